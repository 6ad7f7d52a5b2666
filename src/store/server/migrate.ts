import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { RefoldError } from '../../errors.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { sqlStateOf, translateDatabaseError } from '../postgres/database-errors.ts';
import { requireSuitableServer } from './server-facts.ts';

/** The schema of Refold's own tables. Fixed, because the migrations are plain SQL that names it. */
export const refoldSchema = 'refold';

/** The difference between a database's migrations and those of this code. */
export interface MigrationState {
  /** Known to this code and not applied yet, in order. */
  readonly pending: readonly string[];
  /** Applied by newer code and unknown to this code. */
  readonly unknown: readonly string[];
}

/**
 * Creates or updates Refold's own tables, all or nothing, and returns the applied migrations. Forward only. Safe to call from many
 * processes at once: one does the work, the others wait and find nothing to do.
 *
 * Use a direct connection: a pooler in transaction mode would lose the lock.
 *
 * @throws RefoldError `DATABASE_NOT_MIGRATED` if the database was migrated by a newer Refold.
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
      `Migration '${failed.migrationName}' failed and was rolled back: ${cause.message}`,
      { ...cause.fields, migration: failed.migrationName },
      { cause },
    );
  }
  return { applied: (results ?? []).map((result) => result.migrationName) };
}

/** Compares the migrations applied to the database with those of this code. */
export async function pendingMigrations(db: Database): Promise<MigrationState> {
  const applied = await appliedMigrations(db);
  const known = migrationFiles().map(({ name }) => name);
  return {
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

/** @throws RefoldError `DATABASE_NOT_MIGRATED` if the migrations differ from those of this code. */
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
        // Without values the driver sends the text as a simple query, which may contain many statements and function bodies.
        up: async (db) => void (await db.executeQuery(CompiledQuery.raw(readFileSync(path, 'utf8')))),
      };
    }
    return migrations;
  },
};

/** The numbered files in order, such as `0001_event_log.sql`. */
function migrationFiles(): { name: string; path: string }[] {
  const folder = migrationsFolder();
  return readdirSync(folder)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.sql'.length), path: join(folder, file) }));
}

/** `migrations/` is next to `src/` in the repository and next to `dist/` in the package. */
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
