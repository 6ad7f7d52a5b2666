import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../../events/event-family.ts';
import type { Columns, KeyOf, RowInputOf, RowOf } from '../columns/column.ts';
import type { Row } from '../columns/row-codec.ts';
import type { EventFilter } from './projection.ts';

/** What `evolve` is made of: a handler for each event type that it wants. */
export type Evolve<F extends EventFamily, C extends Columns> = {
  readonly [T in EventTypeOf<F>]?: (
    row: RowOf<C> | null,
    event: RecordedEventOf<F, T>,
    key: KeyOf<C>,
  ) => RowInputOf<C> | null;
};

// TypeScript does not look for unknown columns in what an arrow function returns, nor for unknown keys of an inferred map. `unknown`
// where all is well: anything more precise would stand between the handlers and the types that they are inferred from.
export type Checked<E, F extends EventFamily, C extends Columns> = [Problem<E, F, C>] extends [never]
  ? unknown
  : Problem<E, F, C>;
type Problem<E, F extends EventFamily, C extends Columns> = {
  [T in keyof E & string]: T extends EventTypeOf<F>
    ? E[T] extends (...args: never[]) => infer R
      ? UnknownColumn<R, C> extends infer U extends string
        ? `evolve.${T} returns '${U}', a column that the table does not declare`
        : never
      : never
    : `evolve handles '${T}', an event type that the events do not define`;
}[keyof E & string];
type UnknownColumn<R, C extends Columns> = R extends object ? Exclude<keyof R, keyof C> & string : never;

/** A handler without its types; called with matching events only. */
export type Handler = (row: Row | null, event: RecordedEvent, key: unknown) => Row | null;

/** The event types that have a handler, by family; what the query that reads the log filters by. */
export function eventFilter(
  subject: string,
  families: readonly EventFamily[],
  handlers: Readonly<Record<string, Handler>>,
): readonly EventFilter[] {
  for (const [type, handler] of Object.entries(handlers)) {
    if (typeof handler !== 'function') throw invalidDeclaration(subject, `evolve.${type} is no function.`);
  }
  return handledTypes(subject, families, Object.keys(handlers), (type) => `evolve handles '${type}'`);
}

/**
 * These event types, by family.
 *
 * @param naming how a message says that a type is handled
 * @throws RefoldError `INVALID_DECLARATION` for a type that no family defines, or more than one.
 */
export function handledTypes(
  subject: string,
  families: readonly EventFamily[],
  handled: readonly string[],
  naming: (type: string) => string,
): readonly EventFilter[] {
  const types = families.flatMap((family) => family.types);
  for (const type of handled) {
    const owners = families.filter((family) => family.types.includes(type));
    const names = families.map((family) => family.name).join(', ');
    if (owners.length === 0)
      throw invalidDeclaration(subject, `${naming(type)}, which ${names} does not define.${closest(type, types)}`);
    if (owners.length > 1)
      throw invalidDeclaration(
        subject,
        `${naming(type)}, which ${owners.map((family) => family.name).join(' and ')} both define. Give the event types different names.`,
      );
  }
  const byFamily = families.map((family) => ({
    family: family.name,
    types: family.types.filter((type) => handled.includes(type)),
  }));
  return Object.freeze(byFamily.filter((entry) => entry.types.length > 0));
}
