import type { Columns } from './column.ts';

/** The columns of each unique index beside the key: one, and the one within which its values are unique. */
export function uniqueIndexes(columns: Columns, keyColumns: readonly string[]): readonly (readonly string[])[] {
  return Object.entries(columns)
    .filter(([name, { flags }]) => flags.unique && name !== keyColumns[0])
    .map(([name, { flags }]) => (flags.within === undefined ? [name] : [name, flags.within]));
}
