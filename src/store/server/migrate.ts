import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { RefoldError } from '../../errors.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { translateDatabaseError } from '../postgres/database-errors.ts';
import { refoldTables, run } from '../statements/statement.ts';
import { type MigrationFile, readMigrations } from './migration-files.ts';
import { isSchemaMissing, readRunningProcesses, silentSeconds } from './running-processes.ts';
import { requireSuitableServer } from './server-facts.ts';

/** The schema of Refold's own tables. Fixed, because the migrations are plain SQL that names it. */
export const refoldSchema = 'refold';

/** The difference between a database's migrations and those of this code. */
export interface MigrationState {
  /** Known to this code and not applied yet, in order. */
  readonly pending: readonly string[];
  /** Applied by other code and unknown to this code. */
  readonly unknown: readonly string[];
  /** Why this code can't use a database with the unknown migrations, and what to do. Undefined if there are none. */
  readonly problem: string | undefined;
}

export interface MigrateOptions {
  /** Applies a breaking migration although processes of older code run. They can fail until they are replaced. @default false */
  readonly whileProcessesRun?: boolean;
  /** The folder with the migrations. @default the one of this code */
  readonly folder?: string;
}

/**
 * Creates or updates Refold's own tables, all or nothing, and returns the applied migrations. Forward only. Safe to call from many
 * processes at once: one does the work, the others wait and find nothing to do.
 *
 * Use a direct connection: a pooler in transaction mode would lose the lock.
 *
 * @throws RefoldError `DATABASE_NOT_MIGRATED` if the database was migrated by a newer Refold, by an unreleased one, or if a migration is
 * breaking and processes run.
 */
export async function migrate(target: Database | string, options: MigrateOptions = {}): Promise<{ applied: string[] }> {
  if (typeof target === 'string') {
    const db = createDatabase({ url: target, applicationName: 'refold-migrate', maxConnections: 1 });
    try {
      return await migrate(db, options);
    } finally {
      await db.close();
    }
  }
  await requireSuitableServer(target);
  const files = readMigrations(options.folder);
  const { pending } = await refuseUnknown(target, files);
  if (pending.length === 0) return { applied: [] }; // without a privilege that only the owner has
  if (!options.whileProcessesRun) {
    await refuseWhileProcessesRun(
      target,
      files.filter(({ name, breaking }) => breaking && pending.includes(name)),
    );
  }
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: target.pool }) });
  const migrator = new Migrator({
    db: kysely,
    provider: providerOf(files),
    migrationTableSchema: refoldSchema,
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrations_lock',
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error !== undefined) {
    const failed = results?.find((result) => result.status === 'Error');
    const cause = translateDatabaseError(error, target.url);
    if (!failed) throw cause;
    throw new RefoldError(
      'DATABASE_ERROR',
      `Migration '${failed.migrationName}' failed and was rolled back: ${cause.message}`,
      { ...cause.fields, migration: failed.migrationName },
      { cause },
    );
  }
  return { applied: (results ?? []).map((result) => result.migrationName) };
}

/** Compares the migrations applied to the database with those of this code. */
export async function pendingMigrations(
  db: Database,
  files: readonly Pick<MigrationFile, 'name'>[] = readMigrations(),
): Promise<MigrationState> {
  const applied = await appliedMigrations(db);
  const known = files.map(({ name }) => name);
  const unknown = applied.filter((name) => !known.includes(name));
  return { pending: known.filter((name) => !applied.includes(name)), unknown, problem: problemOf(unknown, known) };
}

/** @throws RefoldError `DATABASE_NOT_MIGRATED` if the migrations differ from those of this code. */
export async function requireMigrated(db: Database): Promise<void> {
  const { pending } = await refuseUnknown(db);
  if (pending.length === 0) return;
  throw new RefoldError(
    'DATABASE_NOT_MIGRATED',
    `The database lacks ${pending.length} of Refold's migrations (${pending.join(', ')}). Run \`refold migrate\`.`,
    { pending },
  );
}

async function refuseUnknown(db: Database, files?: readonly MigrationFile[]): Promise<MigrationState> {
  const state = await pendingMigrations(db, files);
  if (state.problem !== undefined) {
    throw new RefoldError('DATABASE_NOT_MIGRATED', state.problem, { unknown: state.unknown });
  }
  return state;
}

/** A newer release adds migrations at the end. Before its first release, Refold replaced all of them. */
function problemOf(unknown: readonly string[], known: readonly string[]): string | undefined {
  if (unknown.length === 0) return undefined;
  const newest = known.at(-1) ?? '';
  if (unknown.every((name) => name > newest))
    return `The database was migrated by a newer Refold (${unknown.join(', ')}). Update refold in this application.`;
  return (
    `The database was created by an older, unreleased version of Refold (${unknown.join(', ')}), which can't be migrated. ` +
    'Use an empty database, and run `refold migrate`. For an embedded server, delete its folder `.refold`.'
  );
}

async function appliedMigrations(db: Database): Promise<string[]> {
  try {
    const rows = await run(db, refoldTables.selectFrom('refold.migrations').select('name').orderBy('name'));
    return rows.map((row) => row.name);
  } catch (error) {
    if (isSchemaMissing(error)) return [];
    throw error;
  }
}

/** A process of newer code refuses to start before its migrations are applied, so all running processes have older code. */
async function refuseWhileProcessesRun(db: Database, breaking: readonly MigrationFile[]): Promise<void> {
  if (breaking.length === 0) return;
  const processes = await readRunningProcesses(db);
  if (processes.length === 0) return;
  const names = breaking.map(({ name }) => name);
  throw new RefoldError(
    'DATABASE_NOT_MIGRATED',
    `Processes of older code can't run after the migrations ${names.join(', ')}, and these run: ${processes.join(', ')}. ` +
      'Nothing was changed. Stop them and run `refold migrate` again. A killed process counts as running for ' +
      `${silentSeconds} seconds. To migrate now, run \`refold migrate --while-processes-run\`: the processes can fail until they are replaced.`,
    { pending: names, processes },
  );
}

/** Without values the driver sends a file's text as a simple query, which may contain many statements and function bodies. */
function providerOf(files: readonly MigrationFile[]): MigrationProvider {
  const entries = files.map(({ name, text }): [string, Migration] => [
    name,
    { up: async (db) => void (await db.executeQuery(CompiledQuery.raw(text))) },
  ]);
  return { getMigrations: async () => Object.fromEntries(entries) };
}
