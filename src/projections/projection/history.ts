import { invalidDeclaration } from '../../errors.ts';
import type { Columns, KeyOf } from '../columns/column.ts';
import type { Row } from '../columns/row-codec.ts';

/**
 * Where the events of a row are stored: in the stream whose id is the key (`true`), or in the stream that a function returns. All events
 * that change the row must be in that stream.
 */
export type HistoryOption<C extends Columns> = boolean | ((key: KeyOf<C>) => string);

/** Returns the stream id for a row's key. Undefined if the projection has no history. */
export type StreamOfRow = ((key: readonly unknown[]) => string) | undefined;

/** @throws RefoldError `INVALID_DECLARATION` */
export function historyOf(
  subject: string,
  columns: Columns,
  keyColumns: readonly string[],
  option: boolean | ((key: never) => string) | undefined,
): StreamOfRow {
  if (option === undefined || option === false) return undefined;
  const [first, ...others] = keyColumns;
  const single = first !== undefined && others.length === 0 ? first : undefined;
  if (option === true) {
    const kind = single && columns[single]?.type.kind;
    if (kind !== 'text' && kind !== 'uuid')
      throw invalidDeclaration(
        subject,
        `'history: true' needs a key of one text or uuid column, which is the id of the stream. Give a function from the key to the id.`,
      );
    return ([key]) => String(key);
  }
  if (typeof option !== 'function')
    throw invalidDeclaration(subject, `'history' is true, or a function from the key to the id of the row's stream.`);
  const streamOf = option as (key: unknown) => string; // called only with keys of this projection
  return (key) =>
    streamOf(single ? key[0] : (Object.fromEntries(keyColumns.map((name, index) => [name, key[index]])) satisfies Row));
}
