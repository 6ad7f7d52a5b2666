import type { Viewer } from '../../access.ts';
import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { EventFamily, EventTypeOf, PayloadOf } from '../../events/event-family.ts';
import type { Columns, KeyOf } from '../columns/column.ts';
import type { Row } from '../columns/row-codec.ts';

/** Which fields of a payload may be read: all, or those named. All of them only by viewers who may read every column. */
type PayloadFields<P> = boolean | readonly (keyof P & string)[];

/** What may be read of the payloads behind a row, for all viewers or by viewer. */
export type PayloadRule<P = Readonly<Record<string, unknown>>> =
  | PayloadFields<P>
  | ((viewer: Viewer) => PayloadFields<P>);

/** Where the events of a row are, who may read them, and what of their payloads. */
export interface HistoryRules<C extends Columns = Columns, F extends EventFamily = EventFamily> {
  /** The id of the stream that holds all events that change the row. @default the row's key, of one text or uuid column */
  readonly stream?: (key: KeyOf<C>) => string;
  /** Who may read the events behind a row (`cartSummaryEvents`), in addition to the rules of `access`. @default all who see the row */
  readonly access?: (viewer: Viewer) => boolean;
  /**
   * What may be read of the payloads, by event type. The payload of a type without a rule is null.
   * @default all of them if the projection sets no `access`, else none
   */
  readonly payload?: { readonly [T in EventTypeOf<F>]?: PayloadRule<PayloadOf<F, T>> };
}

/**
 * Where the events of a row are stored: in the stream whose id is the key (`true`), or in the stream that a function returns. All events
 * that change the row must be in that stream. Or rules, which also say who may read the events.
 */
export type HistoryOption<C extends Columns, F extends EventFamily = EventFamily> =
  | boolean
  | ((key: KeyOf<C>) => string)
  | HistoryRules<C, F>;

/** The rules without the types of their projection. */
export interface CheckedHistoryRules {
  readonly access?: (viewer: Viewer) => boolean;
  readonly payload?: Readonly<Record<string, PayloadRule>>;
}

/**
 * Checks and freezes the rules; undefined if there are none. `types`: the event types that the projection handles.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 */
function historyRules(subject: string, types: readonly string[], option: unknown): CheckedHistoryRules | undefined {
  if (typeof option !== 'object' || option === null) return undefined;
  const { access, payload = {} } = option as CheckedHistoryRules; // checked below
  refuseUnknown(subject, 'history', Object.keys(option), ['stream', 'access', 'payload']);
  if (access !== undefined && typeof access !== 'function')
    throw invalidDeclaration(subject, `'history.access' is a function from the viewer to true or false.`);
  refuseUnknown(subject, 'history.payload', Object.keys(payload), types);
  for (const [type, rule] of Object.entries(payload))
    if (!isFields(rule) && typeof rule !== 'function')
      throw invalidDeclaration(
        subject,
        `'history.payload.${type}' is true, false, a list of the payload's fields, or a function from the viewer to one of these.`,
      );
  return Object.freeze({ ...(option as CheckedHistoryRules) });
}

function isFields(rule: unknown): boolean {
  return typeof rule === 'boolean' || (Array.isArray(rule) && rule.every((field) => typeof field === 'string'));
}

function refuseUnknown(subject: string, option: string, given: readonly string[], known: readonly string[]): void {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw invalidDeclaration(subject, `'${option}' has '${unknown}', which is unknown.${closest(unknown, known)}`);
}

/** The parts of a projection that follow from its option `history`. @throws RefoldError `INVALID_DECLARATION` */
export function historyParts(
  subject: string,
  { table, history }: { readonly table: Columns; readonly history?: unknown },
  keyColumns: readonly string[],
  filter: readonly { readonly types: readonly string[] }[],
  { keyForEvolve }: { keyForEvolve(key: readonly unknown[]): readonly unknown[] },
): { readonly history: StreamOfRow; readonly historyRules: CheckedHistoryRules | undefined } {
  const streamOf = historyOf(subject, table, keyColumns, history as HistoryOption<Columns>); // checked there
  const types = filter.flatMap((handled) => handled.types);
  return {
    history: streamOf && ((key) => streamOf(keyForEvolve(key))),
    historyRules: historyRules(subject, types, history),
  };
}

/** Returns the stream id for a row's key. Undefined if the projection has no history. */
export type StreamOfRow = ((key: readonly unknown[]) => string) | undefined;

/** @throws RefoldError `INVALID_DECLARATION` */
function historyOf(
  subject: string,
  columns: Columns,
  keyColumns: readonly string[],
  option: boolean | ((key: never) => string) | { readonly stream?: (key: never) => string } | undefined,
): StreamOfRow {
  if (option === undefined || option === false) return undefined;
  if (typeof option === 'object' && option !== null)
    return historyOf(subject, columns, keyColumns, option.stream ?? true);
  const [first, ...others] = keyColumns;
  const single = first !== undefined && others.length === 0 ? first : undefined;
  if (option === true) {
    const kind = single && columns[single]?.type.kind;
    if (kind !== 'text' && kind !== 'uuid')
      throw invalidDeclaration(
        subject,
        `'history: true' needs a key of one text or uuid column, which is the id of the stream. Give a function from the key to the id (with rules, as 'stream').`,
      );
    return ([key]) => String(key);
  }
  if (typeof option !== 'function')
    throw invalidDeclaration(
      subject,
      `'history' is true, a function from the key to the id of the row's stream, or rules: { stream, access, payload }.`,
    );
  const streamOf = option as (key: unknown) => string; // called only with keys of this projection
  return (key) =>
    streamOf(single ? key[0] : (Object.fromEntries(keyColumns.map((name, index) => [name, key[index]])) satisfies Row));
}
