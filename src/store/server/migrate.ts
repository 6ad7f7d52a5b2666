import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { RefoldError } from '../../errors.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { sqlStateOf, translateDatabaseError } from '../postgres/database-errors.ts';
import { requireSuitableServer } from './server-facts.ts';

/** The schema of everything that is Refold's own. Fixed: the migrations are plain SQL that names it. */
export const refoldSchema = 'refold';

/** What the tables of a database need to be the ones that this code was written for. */
export interface MigrationState {
  /** Known to this code and not yet applied, in order. */
  readonly pending: readonly string[];
  /** Applied by newer code, and unknown to this. */
  readonly unknown: readonly string[];
}

/**
 * Creates or updates Refold's own tables, all or nothing, and says which migrations that took. Forward only. Safe to call
 * from many processes at once: one does the work, the others wait and find nothing to do.
 *
 * Give it a direct connection: a pooler in transaction mode would lose the lock that it waits on.
 *
 * @throws RefoldError `DATABASE_NOT_MIGRATED` when the database was migrated by a newer Refold.
 */
export async function migrate(target: Database | string): Promise<{ applied: string[] }> {
  if (typeof target === 'string') {
    const db = createDatabase({ url: target, applicationName: 'refold-migrate', maxConnections: 1 });
    try {
      return await migrate(db);
    } finally {
      await db.close();
    }
  }
  await requireSuitableServer(target);
  await refuseNewer(target);
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: target.pool }) });
  const migrator = new Migrator({
    db: kysely,
    provider: sqlFiles,
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
      `Migration '${failed.migrationName}' failed, and nothing of it was kept: ${cause.message}`,
      { ...cause.fields, migration: failed.migrationName },
      { cause },
    );
  }
  return { applied: (results ?? []).map((result) => result.migrationName) };
}

/** Compares what was applied to the database with what this code knows. */
export async function pendingMigrations(db: Database): Promise<MigrationState> {
  const applied = await appliedMigrations(db);
  const known = migrationFiles().map(({ name }) => name);
  return {
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

/** Throws `DATABASE_NOT_MIGRATED` unless the tables are the ones that this code was written for. */
export async function requireMigrated(db: Database): Promise<void> {
  const { pending } = await refuseNewer(db);
  if (pending.length === 0) return;
  throw new RefoldError(
    'DATABASE_NOT_MIGRATED',
    `The database lacks ${pending.length} of Refold's migrations (${pending.join(', ')}). Run \`refold migrate\`.`,
    { pending },
  );
}

async function refuseNewer(db: Database): Promise<MigrationState> {
  const state = await pendingMigrations(db);
  if (state.unknown.length > 0) {
    throw new RefoldError(
      'DATABASE_NOT_MIGRATED',
      `The database was migrated by a newer Refold (${state.unknown.join(', ')}). Update refold in this application.`,
      { unknown: state.unknown },
    );
  }
  return state;
}

async function appliedMigrations(db: Database): Promise<string[]> {
  try {
    const rows = await db.query<{ name: string }>({ text: 'select name from refold.migrations order by name' });
    return rows.map((row) => row.name);
  } catch (error) {
    const nothingYet = ['42P01', '3F000'].includes(sqlStateOf(error) ?? ''); // no such table, no such schema
    if (nothingYet) return [];
    throw error;
  }
}

const sqlFiles: MigrationProvider = {
  getMigrations: async () => {
    const migrations: Record<string, Migration> = {};
    for (const { name, path } of migrationFiles()) {
      migrations[name] = {
        // Without values the driver sends the text as it is: many statements, function bodies and all.
        up: async (db) => void (await db.executeQuery(CompiledQuery.raw(readFileSync(path, 'utf8')))),
      };
    }
    return migrations;
  },
};

/** The numbered files, such as `0001_event_log.sql`, in order. */
function migrationFiles(): { name: string; path: string }[] {
  const folder = migrationsFolder();
  return readdirSync(folder)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.sql'.length), path: join(folder, file) }));
}

/** `migrations/` lies beside `src/` in the repository and beside `dist/` in the package. */
function migrationsFolder(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, 'migrations');
    if (existsSync(candidate) && existsSync(join(folder, 'package.json'))) return candidate;
  }
  throw new RefoldError(
    'INVALID_CONFIG',
    "Refold's folder 'migrations' is missing beside its code. Keep it with the package when bundling.",
  );
}
