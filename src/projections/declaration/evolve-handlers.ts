import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily, EventTypeOf, RecordedEventOf } from '../../events/event-family.ts';
import type { Columns, KeyOf, RowInputOf, RowOf } from '../columns/column.ts';
import type { Row } from '../columns/row-codec.ts';
import type { EventFilter } from '../projection/projection.ts';

/** The type of `evolve`: a handler for each event type that the projection handles. */
export type Evolve<F extends EventFamily, C extends Columns> = {
  readonly [T in EventTypeOf<F>]?: (
    row: RowOf<C> | null,
    event: RecordedEventOf<F, T>,
    key: KeyOf<C>,
  ) => RowInputOf<C> | null;
};

// TypeScript does not report unknown columns in what an arrow function returns, nor unknown keys of an inferred map. The type is `unknown`
// if there is no problem: a more precise type would interfere with the inference of the handlers' types.
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

/** A handler without its types. It is called with matching events only. */
export type Handler = (row: Row | null, event: RecordedEvent, key: unknown) => Row | null;

/** The handled event types, by family. The query that reads the log filters by them. */
export function eventFilter(
  subject: string,
  families: readonly EventFamily[],
  handlers: Readonly<Record<string, Handler>>,
): readonly EventFilter[] {
  for (const [type, handler] of Object.entries(handlers)) {
    if (typeof handler !== 'function') throw invalidDeclaration(subject, `evolve.${type} is not a function.`);
  }
  return handledTypes(subject, families, Object.keys(handlers), (type) => `evolve handles '${type}'`);
}

/**
 * Groups these event types by family.
 *
 * @param naming returns the words with which a message names a handled type
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
        `${naming(type)}, which ${owners.map((family) => family.name).join(' and ')} both define. Rename one of the event types.`,
      );
  }
  const byFamily = families.map((family) => ({
    family: family.name,
    types: family.types.filter((type) => handled.includes(type)),
  }));
  return Object.freeze(byFamily.filter((entry) => entry.types.length > 0));
}
