/**
 * How a column's value of the batch is merged into the table's value. If the table has no row yet, the batch's value is used.
 *
 * - `add`: their sum; a null is ignored.
 * - `min`, `max`: the lesser or the greater one; a null is ignored.
 * - `first`: the table's value, unless it is null. `last`: the batch's value, unless it is null.
 * - `replace`: the batch's value, even if it is null.
 * - `{ sql }`: an expression over `old` (the table's row) and `new` (the batch's row), such as `{ sql: 'greatest(old.peak, new.peak)' }`.
 */
export type MergeRule = 'add' | 'min' | 'max' | 'first' | 'last' | 'replace' | { readonly sql: string };

/** A select whose result later ones read under its name. It is computed once for a batch. */
export interface SqlStage {
  readonly name: string;
  readonly sql: string;
}

/** The checked declaration of a projection with `evolveSql`. */
export interface SqlFold {
  /** The steps before `rows`, in order. */
  readonly stages: readonly SqlStage[];
  readonly rows: string;
  /** One rule for each column outside the key. */
  readonly merge: Readonly<Record<string, MergeRule>>;
  readonly remove: string | null;
}
