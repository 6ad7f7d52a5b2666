import { highestActiveTables } from '../../store/registry/definitions.ts';
import { limitLockWaits } from '../../store/registry/inline-versions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { lockViews, moveViews } from '../../store/tables/stable-views.ts';

// A long query on the stable view must not hold up an activation for long, nor everything that queues behind its lock.
const viewLockTimeout = '3s';

/** Points the stable views of projections at the tables of their highest active versions. */
export async function pointViews(tx: Queryable, readSchema: string, names: readonly string[]): Promise<void> {
  await lockViews(tx, names);
  const tables = await highestActiveTables(tx, names);
  await limitLockWaits(tx, viewLockTimeout);
  await moveViews(
    tx,
    readSchema,
    names.map((name) => ({ name, tableName: tables.get(name) ?? null })),
  );
}
