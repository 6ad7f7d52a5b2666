import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowKey } from '../../projections/declaration/projection.ts';
import type { UniqueClaims } from '../../projections/fold/unique-claims.ts';
import { savepoint } from '../postgres/savepoint.ts';
import type { Queryable } from '../postgres/statement.ts';
import type { ReadTable } from './read-table.ts';
import { DoubtfulOrder, isRowRefusal } from './refused-rows.ts';

/** A row as it is to be; null removes it. */
export interface ChangedRow {
  readonly key: RowKey;
  readonly row: Row | null;
}

/** A row that the database does not take, and why. */
export interface RefusedRow extends ChangedRow {
  readonly error: unknown;
}

/** Writes rows that change at the same time, so that what one gives up is free for another. */
export async function writeRows(tx: Queryable, table: ReadTable, changed: readonly ChangedRow[]): Promise<void> {
  const removed = changed.flatMap(({ key, row }) => (row ? [] : [key]));
  const set = changed.flatMap(({ row }) => (row ? [row] : []));
  if (removed.length > 0) await table.remove(tx, removed);
  if (set.length === 0) return;
  await table.vacate(tx, set);
  await table.upsert(tx, set);
}

/** As {@link writeRows}, but for the rows that the database refuses. @returns those, in their order */
export async function writeAcceptable(
  tx: Queryable,
  table: ReadTable,
  changed: readonly ChangedRow[],
): Promise<readonly RefusedRow[]> {
  let refused = await writeHalves(tx, table, changed);
  // A row may have been refused for a value that one after it gives up.
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

/** Before a batch is written as a whole. @throws DoubtfulOrder where its rows might have been refused event by event */
export async function expectOrder(tx: Queryable, table: ReadTable, claims: UniqueClaims | undefined): Promise<void> {
  if (!claims) return;
  if (claims.clash) throw new DoubtfulOrder();
  for (const values of claims.passing()) if (await table.holdsAny(tx, values)) throw new DoubtfulOrder();
}
