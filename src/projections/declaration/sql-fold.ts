/**
 * How a batch's value of a column meets the one in the table. Where the table has no row yet, the batch's value is the row's.
 *
 * - `add`: their sum; a null counts as nothing.
 * - `min`, `max`: the lesser, the greater; a null counts as nothing.
 * - `first`: the table's, unless that is null. `last`: the batch's, unless that is null.
 * - `replace`: the batch's, also where it is null.
 * - `{ sql }`: an expression over `old` (the table's row) and `new` (the batch's), such as `{ sql: 'greatest(old.peak, new.peak)' }`.
 */
export type MergeRule = 'add' | 'min' | 'max' | 'first' | 'last' | 'replace' | { readonly sql: string };

/** What a projection with `evolveSql` declares of a batch, checked. */
export interface SqlFold {
  readonly rows: string;
  /** Of each column that is not of the key. */
  readonly merge: Readonly<Record<string, MergeRule>>;
  readonly remove: string | null;
}
