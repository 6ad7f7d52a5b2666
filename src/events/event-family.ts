import type { StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidInput, invalidDeclaration, RefoldError } from '../errors.ts';
import { closest } from './closest.ts';
import type { NewEvent, RecordedEvent } from './event.ts';
import { type EventNames, eventNames } from './event-names.ts';

export type EventSchemas = Readonly<Record<string, StandardSchemaV1>>;

/** Any payload that is not a promise. */
type Synchronous = string | number | boolean | null | undefined | (object & { readonly then?: never });

/** Converts a payload of one version to the next version. Pure and synchronous. */
export type Upcaster = (payload: never) => Synchronous;

/** The upcasters of a type, oldest first. The last one returns the payload that the type's schema describes. */
type Upcasters<Payload> =
  | readonly []
  | readonly [...Upcaster[], (payload: never) => unknown extends Payload ? Synchronous : Payload];

/** A family of event types that share one kind of stream. Created by {@link defineEvents}. */
export interface EventFamily<Name extends string = string, Schemas extends EventSchemas = EventSchemas>
  extends EventNames {
  readonly kind: 'event-family';
  readonly name: Name;
  readonly schemas: Schemas;
  readonly types: readonly string[];
  /** The upcasters of each type, oldest first. A type's payload version is the number of its upcasters plus one. */
  readonly upcasters: Readonly<Partial<Record<string, readonly Upcaster[]>>>;
}

/** The names of a family's event types; of several families, the union. */
export type EventTypeOf<F extends EventFamily> = F extends EventFamily<string, infer S> ? keyof S & string : never;

/** The payload of one event type of a family. */
export type PayloadOf<F extends EventFamily, Type extends string> =
  F extends EventFamily<string, infer S>
    ? Type extends keyof S
      ? StandardSchemaV1.InferOutput<S[Type]>
      : never
    : never;

/** Any new event of a family, discriminated by `type`. */
export type NewEventOf<F extends EventFamily> = { [T in EventTypeOf<F>]: NewEvent<T, PayloadOf<F, T>> }[EventTypeOf<F>];

/** Any recorded event of a family, discriminated by `type`. */
export type RecordedEventOf<F extends EventFamily, Type extends EventTypeOf<F> = EventTypeOf<F>> = {
  [T in Type]: RecordedEvent<T, PayloadOf<F, T>>;
}[Type];

/**
 * `T` if JSON preserves it; otherwise an error message as a type. Recursive payloads, such as trees and any JSON (`z.json()`), are checked
 * ten levels deep.
 */
type JsonOnly<T, Depth extends readonly unknown[] = []> = Depth['length'] extends 10
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint | symbol | Date | Map<unknown, unknown> | Set<unknown> | ((...args: never[]) => unknown)
      ? 'an event payload must survive JSON: use a string here'
      : T extends object
        ? { [K in keyof T]: JsonOnly<T[K], [...Depth, unknown]> }
        : T;

type JsonSchemas<S extends EventSchemas> = {
  [K in keyof S]: StandardSchemaV1.InferOutput<S[K]> extends JsonOnly<StandardSchemaV1.InferOutput<S[K]>>
    ? S[K]
    : StandardSchemaV1<unknown, JsonOnly<StandardSchemaV1.InferOutput<S[K]>>>;
};

export interface EventFamilyOptions<S extends EventSchemas> {
  /**
   * Per event type, the functions that convert payloads written by older code, oldest first. The first upcaster takes version 1 and returns
   * version 2, and so on; the last one returns the payload that the type's schema describes. Stored events never change. They are upcast on
   * every read. In development, the result is checked against the schema.
   */
  readonly upcasters?: { readonly [T in keyof S & string]?: Upcasters<StandardSchemaV1.InferOutput<S[T]>> };
  /**
   * The former names of a renamed family, oldest first. The log keeps the first name, so renaming changes no stored event: old and new code can
   * run side by side.
   * @default never renamed
   */
  readonly was?: readonly string[];
  /**
   * Per renamed event type, its former names, oldest first. Events are written under the first name and read under all of them.
   * @default never renamed
   */
  readonly types?: { readonly [T in keyof S & string]?: { readonly was: readonly string[] } };
}

/**
 * Declares a family of events with a payload schema for each type (any Standard Schema validator: zod, valibot, arktype …).
 *
 * Payloads are validated before they are written. They are not validated again when they are read.
 *
 * @throws RefoldError `INVALID_DECLARATION` for an invalid name, a former name that is taken, or an upcaster of an unknown type.
 * @example
 * const cart = defineEvents('shopping_cart', {
 *   ProductItemAdded: z.object({ productId: z.string(), quantity: z.int(), unitPrice: z.string() }),
 *   ShoppingCartConfirmed: z.object({ confirmedAt: z.iso.datetime() }),
 * });
 */
export function defineEvents<const Name extends string, const S extends EventSchemas>(
  name: Name,
  schemas: S & JsonSchemas<S>,
  options: EventFamilyOptions<NoInfer<S>> = {},
): EventFamily<Name, S> {
  const subject = `defineEvents('${name}')`;
  const types = Object.keys(schemas);
  if (types.length === 0) throw invalidDeclaration(subject, 'declares no event type; add at least one.');
  const names = eventNames(subject, name, types, options);
  for (const type of types) {
    if (schemas[type]?.['~standard']?.version !== 1) {
      throw invalidDeclaration(
        subject,
        `the schema of '${type}' is not a Standard Schema validator; use zod, valibot, arktype or another that implements it.`,
      );
    }
  }
  for (const type of Object.keys(options.upcasters ?? {})) {
    if (!types.includes(type))
      throw invalidDeclaration(subject, `upcasters name '${type}', which it does not define.${closest(type, types)}`);
  }
  return Object.freeze({
    kind: 'event-family',
    name,
    schemas: Object.freeze({ ...schemas }),
    types: Object.freeze(types),
    ...names,
    upcasters: Object.freeze(Object.assign(Object.create(null), options.upcasters)), // null prototype: a type may be called 'constructor'
  });
}

/** The payload version that new events of this type are written with. */
export function payloadVersion(family: EventFamily, type: string): number {
  return (family.upcasters[type]?.length ?? 0) + 1;
}

/**
 * Validates an event against its family and returns it with the payload that its schema returned.
 *
 * @throws RefoldError `UNKNOWN_EVENT_TYPE`, or {@link InvalidInput} `INVALID_PAYLOAD`.
 */
export async function validateEvent(family: EventFamily, event: NewEvent): Promise<NewEvent> {
  const schema = Object.hasOwn(family.schemas, event.type) ? family.schemas[event.type] : undefined;
  if (!schema) {
    const renamed = family.declaredTypes[event.type];
    throw new RefoldError(
      'UNKNOWN_EVENT_TYPE',
      `${family.name} does not define an event type '${event.type}'.${renamed === undefined ? closest(event.type, family.types) : ` Its name is '${renamed}' now.`}`,
      { family: family.name, type: event.type },
    );
  }
  const validated = schema['~standard'].validate(event.payload);
  const result = validated instanceof Promise ? await validated : validated;
  if (result.issues)
    throw new InvalidInput(
      'INVALID_PAYLOAD',
      `The payload of ${family.name}'s '${event.type}'`,
      inputIssues(result.issues),
    );
  return { ...event, payload: result.value };
}

/** Converts the issues of a Standard Schema validator to issues with plain paths. */
export function inputIssues(
  issues: readonly StandardSchemaV1.Issue[],
): { path: (string | number)[]; message: string }[] {
  return issues.map((issue) => ({
    path: (issue.path ?? []).map((segment) => {
      const key = typeof segment === 'object' ? segment.key : segment;
      return typeof key === 'number' ? key : String(key);
    }),
    message: issue.message,
  }));
}

/** Upcasts a stored payload of a known version to the newest version of its type. @throws what an upcaster throws; TypeError for a promise */
export function upcast(family: EventFamily, type: string, version: number, payload: unknown): unknown {
  const steps = family.upcasters[type] ?? [];
  return steps.slice(version - 1).reduce<unknown>((value, step) => {
    const next = (step as (payload: unknown) => unknown)(value); // Upcaster declares `never` only to accept any parameter type
    if (typeof (next as { then?: unknown } | null | undefined)?.then !== 'function') return next; // a property of anything
    Promise.resolve(next).catch(() => {}); // nobody awaits it
    throw new TypeError('it returned a promise, and upcasters are synchronous. Return the payload itself');
  }, payload);
}
