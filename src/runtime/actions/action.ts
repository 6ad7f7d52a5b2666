import type { AdminRight } from '../../config/admin-options.ts';
import type { Config } from '../../config/define-config.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ReadStores } from '../../store/read-store.ts';
import type { BoundedCount } from '../inspection/application.ts';
import type { LetterChoice, LetterPlace } from '../inspection/letters.ts';
import type { StoreFinder } from '../stores/steps-of-stores.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import type { Lifecycle } from '../versions/lifecycle.ts';

/** What an action needs of the process. In development the declarations may be replaced, so read them each time. */
export interface ActionServices {
  /** The database of the log. */
  readonly db: Database;
  readonly stores: ReadStores;
  /** Finds the store of a version: its actions run there. */
  readonly find: StoreFinder;
  readonly lifecycle: Lifecycle;
  readonly log: EventLog;
  readonly config: Config;
}

interface OfVersion {
  readonly version: string;
}

interface OfReactor {
  readonly reactor: string;
}

interface ReactorPosition extends OfReactor {
  readonly position: GlobalPosition;
}

export interface DeadLettersInput {
  readonly ids?: readonly string[] | undefined;
  readonly filter?: LetterChoice | undefined;
  readonly after?: LetterPlace | undefined;
}

/** Every action that operators can take, by name, with its input. */
export interface ActionInputs {
  readonly activate: OfVersion & { readonly along: readonly string[]; readonly allowBreaking: boolean };
  readonly rollback: { readonly projection: string; readonly version?: number | undefined };
  readonly retire: OfVersion & { readonly graceHours: number; readonly force: boolean; readonly allowLoss: boolean };
  readonly rebuild: OfVersion & {
    readonly inPlace: boolean;
    readonly fromSnapshot: bigint | undefined;
    readonly fromPosition: GlobalPosition | undefined;
  };
  readonly cancelRebuild: OfVersion;
  readonly acceptRebuild: OfVersion;
  readonly pause: OfVersion;
  readonly resume: OfVersion;
  readonly takeSnapshot: OfVersion;
  readonly restoreSnapshot: OfVersion & { readonly snapshot: bigint };
  readonly dropSnapshot: OfVersion & { readonly snapshot: bigint };
  readonly startCanary: OfVersion & {
    readonly percent: number;
    readonly header: { readonly name: string; readonly value: string | null } | null;
    readonly allowBreaking: boolean;
  };
  readonly endCanary: { readonly projection: string };
  readonly startShadow: OfVersion & { readonly oneOf: number };
  readonly stopShadow: OfVersion;
  readonly retryDeadLetters: DeadLettersInput;
  readonly discardDeadLetters: DeadLettersInput;
  readonly recallDiscards: OfVersion & { readonly key: unknown };
  readonly pauseReactor: OfReactor;
  readonly resumeReactor: OfReactor;
  readonly rewindReactor: ReactorPosition;
  readonly skipReactor: ReactorPosition;
  readonly cancelWaitingEvent: ReactorPosition;
  readonly withdrawReactorVersion: OfReactor & { readonly version: number };
  readonly forgetReactor: OfReactor;
}

export type ActionName = keyof ActionInputs;

/** One action with its input. */
export type Action = { readonly [N in ActionName]: { readonly name: N; readonly input: ActionInputs[N] } }[ActionName];

/** What an action would do, as the action itself says it. */
export interface Draft {
  /** The version, the reactor or the projection; null if it concerns several. */
  readonly of: string | null;
  readonly summary: string;
  readonly details?: readonly string[];
  readonly warnings?: readonly string[];
  /** Why it would be refused. */
  readonly refusal?: string | null;
  /** The inputs that overcome the refusal. */
  readonly overcomeBy?: readonly string[];
  readonly concerns?: BoundedCount;
  /** What must be the same when it runs. */
  readonly basis: unknown;
  /** What it concerns at most: passed on to its run. */
  readonly bound?: string;
}

/** What was done. */
export interface Done {
  readonly summary: string;
  readonly version?: string;
  readonly reactor?: string;
  readonly folded?: number;
  readonly discarded?: number;
  readonly left?: number;
  /** Whether a processor that had stopped continues. */
  readonly continues?: boolean;
  readonly next?: LetterPlace | null;
}

/** How one action is previewed and run. Both check the same, by the same code. */
export interface ActionDefinition<N extends ActionName> {
  readonly right: AdminRight;
  preview(services: ActionServices, input: ActionInputs[N]): Promise<Draft>;
  /** @param bound what the preview returned as such */
  run(
    services: ActionServices,
    input: ActionInputs[N],
    step: TransitionReason,
    bound: string | undefined,
  ): Promise<Done>;
}

export type ActionDefinitions<N extends ActionName> = { readonly [M in N]: ActionDefinition<M> };
