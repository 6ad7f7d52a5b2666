import type { Done } from '../../runtime/actions/action.ts';
import type { InspectedEntry } from '../../runtime/inspection/audit-log.ts';
import type { InspectedLetter } from '../../runtime/inspection/letters.ts';
import type { InspectedReactor, InspectedVersion, Overview } from '../../runtime/inspection/overview.ts';
import type { PartitionStatus, VersionVerification } from '../../runtime/monitoring/status.ts';
import type { BrowsedDiscard } from '../../store/browsing/browse-discards.ts';
import type { ClientEntry } from '../../store/browsing/browse-usage.ts';
import type { StoredEvent } from '../../store/browsing/search-events.ts';
import type { WaitingEvent } from '../../store/reactors/reactor-instances.ts';
import type { FieldUsage } from '../../store/registry/field-usage.ts';
import type { Shadow } from '../../store/registry/shadows.ts';
import type { LetterError } from '../../store/statements/stored-json.ts';
import type { Caller } from '../access/require-right.ts';
import type { AdminContext } from './context.ts';
import type * as sdl from './sdl.generated.ts';

interface ProcessorError {
  readonly message: string;
  readonly at: string;
  readonly code?: string;
}

/** A type of the SDL, and the object of the runtime behind it. All other types are objects with the fields of the SDL. */
interface Backed {
  AuditEntry: [sdl.AuditEntry, InspectedEntry];
  Caller: [sdl.Caller, Caller];
  Client: [sdl.Client, ClientEntry];
  DeadLetter: [sdl.DeadLetter, InspectedLetter];
  Difference: [sdl.Difference, VersionVerification['samples'][number]];
  Discard: [sdl.Discard, BrowsedDiscard];
  FieldUsage: [sdl.FieldUsage, FieldUsage];
  LetterError: [sdl.LetterError, LetterError];
  LogEvent: [sdl.LogEvent, StoredEvent];
  Outcome: [sdl.Outcome, Omit<Done, 'next'> & { readonly action: sdl.ActionName; readonly next: string | null }];
  Overview: [sdl.Overview, Overview];
  Partition: [sdl.Partition, PartitionStatus];
  ProcessorError: [sdl.ProcessorError, ProcessorError];
  Reactor: [sdl.Reactor, InspectedReactor];
  ReactorVersion: [sdl.ReactorVersion, InspectedReactor['versions'][number]];
  ShadowExample: [sdl.ShadowExample, Shadow['examples'][number]];
  Stall: [sdl.Stall, Overview['stalls'][number]];
  Version: [sdl.Version, InspectedVersion];
  WaitingEvent: [sdl.WaitingEvent, WaitingEvent];
}

/** What a resolver returns for a value of the SDL. */
export type Behind<T> = T extends readonly (infer Item)[]
  ? readonly Behind<Item>[]
  : T extends { readonly __typename: infer Name }
    ? Name extends keyof Backed
      ? Backed[Name][1]
      : { readonly [Field in FieldOf<T>]: Behind<T[Field]> }
    : T;

type FieldOf<T> = Exclude<keyof T, '__typename'>;

/** The fields that an object has as the SDL has them: they need no resolver. */
type Present<T, Parent> = {
  [Field in FieldOf<T> & keyof Parent]: Parent[Field] extends Behind<T[Field]> ? Field : never;
}[FieldOf<T> & keyof Parent];

// A resolver names the type of its arguments, such as `QueryVersionsArgs`.
type Resolver<T, Parent> = (parent: Parent, args: never, context: AdminContext) => Behind<T> | PromiseLike<Behind<T>>;

type ResolversOf<T, Parent> = {
  readonly [Field in Exclude<FieldOf<T>, Present<T, Parent>>]: Resolver<T[Field], Parent>;
} & { readonly [Field in Present<T, Parent>]?: Resolver<T[Field], Parent> };

/** The fields of types, for those that an object lacks or has in another form; also to hide what a caller may not see. */
export type TypeResolvers = { readonly [Name in keyof Backed]: ResolversOf<Backed[Name][0], Backed[Name][1]> };

export type QueryResolvers = ResolversOf<sdl.Query, unknown>;
export type MutationResolvers = ResolversOf<sdl.Mutation, unknown>;

export type SubscriptionResolvers = {
  readonly [Field in FieldOf<sdl.Subscription>]: {
    subscribe(root: unknown, args: never, context: AdminContext): AsyncIterable<Behind<sdl.Subscription[Field]>>;
    resolve(message: Behind<sdl.Subscription[Field]>): Behind<sdl.Subscription[Field]>;
  };
};
