import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { TableHook } from '../../projections/projection/table-hooks.ts';
import type { Database } from '../../store/postgres/database.ts';
import { sqlStateOf } from '../../store/postgres/database-errors.ts';
import { highestActiveTables } from '../../store/registry/definitions.ts';
import { limitLockWaits } from '../../store/registry/inline-versions.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import { type Queryable, runTogether } from '../../store/statements/statement.ts';
import { dropAlone, dropLater, dropNever, dropOldTables, postponeDrop } from '../../store/tables/old-tables.ts';
import { createReadTable, tableExists } from '../../store/tables/read-table.ts';
import { lockViews, moveViews } from '../../store/tables/stable-views.ts';
import { reasonOf } from '../../thrown.ts';

/** Creates the tables of versions, and runs their `setUp`. @throws RefoldError `HOOK_FAILED` */
export async function createVersionTables(
  tx: Queryable,
  projections: readonly Projection[],
  readSchema: string,
): Promise<void> {
  const texts: string[] = [];
  for (const projection of projections) texts.push(...(await createReadTable(projection, readSchema).creation(tx)));
  await runTogether(tx, texts);
  for (const projection of projections) await runHook(tx, projection, readSchema, 'setUp');
}

/** Drops a version's table if it exists, after its `tearDown`. @throws RefoldError `HOOK_FAILED` */
export async function dropVersionTable(tx: Queryable, projection: Projection, readSchema: string): Promise<void> {
  if (!(await tableExists(tx, readSchema, projection.tableName))) return;
  await runHook(tx, projection, readSchema, 'tearDown');
  await createReadTable(projection, readSchema).drop(tx);
}

/**
 * Drops the table of an edited version, and returns where the version is built. Nobody waits for a long reader of the table or of the view: the
 * version then gets another table, and the old one goes when that reader has ended.
 */
export async function leaveTable(
  tx: Queryable,
  projection: Projection,
  { tableName, generation }: { readonly tableName: string; readonly generation: number },
  readSchema: string,
): Promise<Projection> {
  const { name, version } = projection;
  const isFree = await pointViews(tx, readSchema, [name]);
  if (isFree && (await dropUnread(tx, [storedIn(projection, tableName), projection], readSchema))) {
    // The first table's name is used again, even if a rebuild had scheduled that table to be dropped.
    await dropNever(tx, readSchema, projection.tableName);
    return projection;
  }
  await dropLater(tx, readSchema, tableName, 0);
  const next = storedIn(projection, `${name}_v${version}_g${generation + 1}`);
  await dropNever(tx, readSchema, next.tableName);
  return next;
}

/** Returns false, and drops none, if somebody reads one of them. */
async function dropUnread(tx: Queryable, projections: readonly Projection[], readSchema: string): Promise<boolean> {
  try {
    await savepoint(tx, async () => {
      await limitLockWaits(tx, viewLockTimeout);
      for (const projection of projections) await dropVersionTable(tx, projection, readSchema);
    });
    return true;
  } catch (error) {
    if (sqlStateOf(error) !== '55P03') throw error;
    return false;
  } finally {
    await limitLockWaits(tx, null);
  }
}

export interface OldTablesOptions {
  readonly db: Database;
  readonly projections: readonly Projection[];
  readonly logger: Logger;
}

/**
 * Drops the tables that are due, each in its own transaction. If this process declares the version, its `tearDown` runs first. A table that can't
 * be dropped causes a warning and is retried later; the others continue.
 */
export async function dropTablesOutOfUse({ db, projections, logger }: OldTablesOptions): Promise<void> {
  await dropOldTables(db, {
    async drop(tx, table) {
      const { readSchema, tableName } = table;
      const projection = projections.find(({ tableName: first }) => tableName === first || isRebuilt(first, tableName));
      if (projection) await dropVersionTable(tx, storedIn(projection, tableName), readSchema);
      else await dropAlone(tx, table);
    },
    async failed(table, error) {
      await postponeDrop(db, table, retrySeconds);
      const reason = reasonOf(error);
      logger.warn(
        { err: error },
        `The old table ${table.readSchema}.${table.tableName} can't be dropped; trying again in ${retrySeconds} seconds. ${reason}`,
      );
    },
  });
}

// Long enough not to flood the log, short enough for an operator to see soon that a fix works.
const retrySeconds = 60;

function isRebuilt(first: string, tableName: string): boolean {
  return tableName.startsWith(`${first}_g`) && /^\d+$/.test(tableName.slice(first.length + 2));
}

async function runHook(
  tx: Queryable,
  projection: Projection,
  schema: string,
  name: 'setUp' | 'tearDown',
): Promise<void> {
  const hook: TableHook | undefined = projection[name];
  if (!hook) return;
  const { id, tableName } = projection;
  try {
    await hook({
      query: (text, values) => tx.query<Record<string, unknown>>({ text, ...(values ? { values } : {}) }),
      table: qualified(schema, tableName),
      schema,
      tableName,
    });
  } catch (cause) {
    const reason = reasonOf(cause);
    const problem = `${id}: ${name} failed for the table ${schema}.${tableName}: ${reason}`;
    // The SQLSTATE shows the code that drops tables whether this one is in use at present.
    const fields = { projection: id, hook: name, table: tableName, sqlState: sqlStateOf(cause) };
    throw new RefoldError('HOOK_FAILED', problem, fields, { cause });
  }
}

// A session that waits for a view keeps later readers of it waiting. Enough for short queries to end.
const viewLockTimeout = '100ms';

// lock_not_available; dependent_objects_still_exist, of a view that loses columns and that a user's view selects from.
const keepsView: ReadonlySet<string> = new Set(['55P03', '2BP01']);

/**
 * Points the stable views of projections at the tables of their highest active versions. Returns false if others read one of them, or if views
 * of users depend on columns that it loses: the step goes on without it, and the view follows later (`follow-views.ts`).
 *
 * @param replaced a table that another one will replace before the transaction ends
 */
export async function pointViews(
  tx: Queryable,
  readSchema: string,
  names: readonly string[],
  replaced: { readonly from: string; readonly to: string } | null = null,
): Promise<boolean> {
  await lockViews(tx, names);
  const tables = await highestActiveTables(tx, names);
  const move = (moved: readonly string[]) =>
    savepoint(tx, async () => {
      await limitLockWaits(tx, viewLockTimeout);
      await moveViews(
        tx,
        readSchema,
        moved.map((name) => {
          const tableName = tables.get(name) ?? null;
          return { name, tableName: replaced && tableName === replaced.from ? replaced.to : tableName };
        }),
      );
      await limitLockWaits(tx, null); // the caller's later statements may wait
      return true;
    }).catch((error: unknown) => {
      if (!keepsView.has(sqlStateOf(error) ?? '')) throw error;
      return false;
    });
  if (names.length === 0 || (await move(names))) return true;
  // The others move along.
  if (names.length > 1) for (const name of names) await move([name]);
  return false;
}
