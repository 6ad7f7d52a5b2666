import type { Row } from '../../projections/columns/row-codec.ts';
import type { UniqueClaims } from '../../projections/fold/unique-claims.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import { savepoint } from '../statements/savepoint.ts';
import type { Queryable } from '../statements/statement.ts';
import type { ReadTable } from './read-table.ts';
import { AmbiguousOrder, isRowRefusal } from './refused-rows.ts';

/** The new state of a row; null removes it. */
export interface ChangedRow {
  readonly key: RowKey;
  readonly row: Row | null;
}

/** A row that the database refuses, and the error. */
export interface RefusedRow extends ChangedRow {
  readonly error: unknown;
}

/** Writes rows that change together. A unique value that one row releases is free for another. */
export async function writeRows(tx: Queryable, table: ReadTable, changed: readonly ChangedRow[]): Promise<void> {
  const removed = changed.flatMap(({ key, row }) => (row ? [] : [key]));
  const set = changed.flatMap(({ row }) => (row ? [row] : []));
  if (removed.length > 0) await table.remove(tx, removed);
  if (set.length === 0) return;
  await table.vacate(tx, set);
  await table.upsert(tx, set);
}

/** Like {@link writeRows}, but skips the rows that the database refuses. @returns the refused rows, in order */
export async function writeAcceptable(
  tx: Queryable,
  table: ReadTable,
  changed: readonly ChangedRow[],
): Promise<readonly RefusedRow[]> {
  let refused = await writeHalves(tx, table, changed);
  // A row may have been refused because of a value that a later row releases.
  for (let before = changed.length; refused.length > 0 && refused.length < before; ) {
    before = refused.length;
    refused = await writeHalves(tx, table, refused);
  }
  return refused;
}

async function writeHalves(
  tx: Queryable,
  table: ReadTable,
  changed: readonly ChangedRow[],
): Promise<readonly RefusedRow[]> {
  try {
    await savepoint(tx, () => writeRows(tx, table, changed));
    return [];
  } catch (error) {
    if (!isRowRefusal(error)) throw error;
    const [only] = changed;
    if (only && changed.length === 1) return [{ key: only.key, row: only.row, error }];
    const middle = Math.ceil(changed.length / 2);
    const first = await writeHalves(tx, table, changed.slice(0, middle));
    return [...first, ...(await writeHalves(tx, table, changed.slice(middle)))];
  }
}

/** Call this before writing a batch as a whole. @throws DoubtfulOrder if its rows could be refused event by event */
export async function expectOrder(tx: Queryable, table: ReadTable, claims: UniqueClaims | undefined): Promise<void> {
  if (!claims) return;
  if (claims.clash) throw new AmbiguousOrder();
  for (const values of claims.passing()) if (await table.holderOf(tx, values)) throw new AmbiguousOrder();
}
