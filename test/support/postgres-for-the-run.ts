import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { grantsScript } from '../../src/store/server/grants.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { removeBundles } from './bundled-program.ts';
import { embeddedBinaries, type PostgresBinaries, startPostgresCluster } from './postgres-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresForTheRun;
  }
}

/** What test files receive about the run's server. */
export interface PostgresForTheRun {
  /** A database used only to create others from it. */
  readonly adminUrl: string;
  /** The migrated database that every test database is a clone of. */
  readonly template: string;
  /** How a test database is created from it, in `create database`: the quickest way that the server has. */
  readonly cloning: string;
  /** The prefix of the names of this run's test databases. */
  readonly prefix: string;
  /** The programs of the run's own server; undefined if the run uses an existing server. */
  readonly binaries: PostgresBinaries | undefined;
  /** Its settings, for additional servers. */
  readonly settings: ServerSettings;
  /** The role of the tests' connections, with the grants of `refold migrate --print-grants`. Without one, they are those of `adminUrl`. */
  readonly runtimeRole: string | undefined;
  /** Whether this is the second run of the same tests, on another PostgreSQL. */
  readonly again: boolean;
}

export type ServerSettings = Readonly<Record<string, string>>;

/**
 * Legal settings, unlike those of most servers. Refold sets or names everything that it relies on. Timeouts and another search path are not
 * included: they would end the tests' own sessions on a slow machine, or hide their tables. test/system/server-defaults.test.ts has those.
 */
const unusualDefaults: ServerSettings = {
  default_transaction_isolation: 'repeatable read',
  TimeZone: 'Asia/Kathmandu',
  DateStyle: 'German, DMY',
  IntervalStyle: 'postgres_verbose',
  bytea_output: 'escape',
  array_nulls: 'off',
  work_mem: '64kB',
};

/** Vitest's global setup: one server for the run, and the template database in it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  return serve(project, await startServer());
}

/** Prepares the server for the run; returns a function that cleans up. */
export async function serve(
  project: TestProject,
  server: ServerOfTheRun,
  { again = false, underRoles = false } = {},
): Promise<() => Promise<void>> {
  try {
    // Two runs may share the server that DATABASE_URL names.
    const run = randomBytes(3).toString('hex');
    const template = `refold_template_${run}`;
    const postgres = {
      adminUrl: server.url,
      template,
      cloning: `template ${template}${(await majorVersion(server.url)) >= 15 ? ' strategy file_copy' : ''}`,
      prefix: `refold_test_${run}_`,
      binaries: server.binaries,
      settings: server.settings ?? {},
      runtimeRole: underRoles ? roles.runtime : undefined,
      again,
    };
    await query(postgres.adminUrl, `create database ${template}`);
    const templateUrl = databaseUrl(postgres.adminUrl, template);
    await (underRoles ? migrateUnderRoles(templateUrl) : migrate(templateUrl));
    project.provide('postgres', postgres);
    return async () => {
      const kept = await leftDatabases(postgres);
      await query(postgres.adminUrl, `drop database ${template} with (force)`);
      await server.stop(kept);
      removeBundles();
    };
  } catch (error) {
    await server.stop([]);
    throw error;
  }
}

const roles = { owner: 'refold_owner', runtime: 'refold_runtime', readOnly: 'refold_reader' } as const;

/** As docs/operating.md says: the owner's tables, and the grants before and after. */
async function migrateUnderRoles(url: string): Promise<void> {
  const script = grantsScript({ ...roles, readSchema: 'read_models', textSearch: true });
  await query(url, script);
  await migrate(urlAs(url, roles.owner));
  await query(url, script);
}

/** The URL of the same database for another role. The run's server asks for no password. */
export function urlAs(url: string, role: string): string {
  return Object.assign(new URL(url), { username: role }).href;
}

/** The URL of another database on the same server. */
export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

export interface ServerOfTheRun {
  readonly url: string;
  readonly binaries?: PostgresBinaries;
  readonly settings?: ServerSettings;
  stop(keptDatabases: readonly string[]): Promise<void>;
}

async function startServer(): Promise<ServerOfTheRun> {
  const given = process.env.DATABASE_URL;
  if (given !== undefined && given !== '') {
    return { url: given, stop: async (kept) => report(given, kept) };
  }
  return (await startContainer()) ?? (await startFrom(await embeddedBinaries(), unusualDefaults));
}

/** By default with the defaults of the build, including JIT if available. */
export async function startFrom(binaries: PostgresBinaries, settings: ServerSettings = {}): Promise<ServerOfTheRun> {
  const cluster = await startPostgresCluster({ binaries, settings });
  return {
    url: cluster.url,
    binaries: cluster.binaries,
    settings,
    stop: async (kept) => {
      const keepFiles = kept.length > 0 && process.env.CI === undefined;
      await cluster.stop({ keepFiles });
      if (!keepFiles) return;
      const port = new URL(cluster.url).port;
      report(cluster.url, kept);
      const asItsOwner = process.getuid?.() === 0 ? 'runuser -u postgres -- ' : '';
      console.error(
        `Start their server with: ${asItsOwner}${cluster.binaries.postgres} -D ${cluster.dataDirectory} -p ${port} -k ''`,
      );
    },
  };
}

/** Undefined if no Docker engine responds. */
async function startContainer(): Promise<ServerOfTheRun | undefined> {
  const { getContainerRuntimeClient } = await import('testcontainers');
  const engine = await getContainerRuntimeClient().catch(() => undefined);
  if (engine === undefined) return undefined;
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const container = await new PostgreSqlContainer('postgres:18-alpine')
    .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=400'])
    .start();
  return {
    url: container.getConnectionUri(),
    stop: async () => {
      await container.stop();
    },
  };
}

async function majorVersion(url: string): Promise<number> {
  const [row] = await query(url, "select current_setting('server_version_num')::int / 10000 as major");
  return Number(row?.major);
}

async function leftDatabases(postgres: PostgresForTheRun): Promise<readonly string[]> {
  const left = await query(
    postgres.adminUrl,
    `select datname as name from pg_database where starts_with(datname, '${postgres.prefix}') order by 1`,
  );
  return left.map((row) => String(row.name));
}

function report(serverUrl: string, kept: readonly string[]): void {
  for (const name of kept) console.error(`A failed test's database was kept: ${databaseUrl(serverUrl, name)}`);
}

async function query(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  await client.connect();
  try {
    const result = await client.query<Record<string, unknown>>(statement);
    return result.rows;
  } finally {
    await client.end();
  }
}
