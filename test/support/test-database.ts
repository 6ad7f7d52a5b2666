import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { anyTestFailed } from './failed-tests.ts';
import { databaseUrl, urlAs } from './postgres-for-the-run.ts';

export interface TestDatabase {
  /** If the run has a runtime role (`underRoles`), of that role, which may do what a running application needs, and no more. */
  readonly url: string;
  /** The same database for a superuser. */
  readonly superuserUrl: string;
  /** Runs statements that no application may, such as `alter database`. */
  administer(statements: string): Promise<void>;
  /**
   * Fails if Refold has left a connection open. Drops the database, or keeps it if a test of the file has
   * failed. Call it in `afterAll`, after everything that the tests started was stopped.
   */
  drop(options?: { readonly longestGoodbyeMs?: number }): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Whose `url` it is. A superuser's is for tests that make tables of their own, or do to Refold's what no application does. @default 'runtime' */
  readonly role?: 'runtime' | 'superuser';
}

/** The test file's own database, with Refold's migrations applied. */
export async function createTestDatabase({ role = 'runtime' }: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { adminUrl, cloning, prefix, runtimeRole } = inject('postgres');
  const name = prefix + randomBytes(6).toString('hex');
  await whenFree(await adminOf(adminUrl), `create database ${name} ${cloning}`);
  const superuserUrl = databaseUrl(adminUrl, name);
  return {
    url: role === 'runtime' && runtimeRole !== undefined ? urlAs(superuserUrl, runtimeRole) : superuserUrl,
    superuserUrl,
    administer: (statements) => withClient(superuserUrl, async (client) => void (await client.query(statements))),
    drop: async ({ longestGoodbyeMs = 60_000 } = {}) => {
      const client = await adminOf(adminUrl);
      const leaked = await leakedConnections(client, name, longestGoodbyeMs);
      if (!anyTestFailed()) await whenFree(client, dropping(name));
      if (leaked.length > 0) throw new Error(leakMessage(leaked));
    },
  };
}

/**
 * For a test without notifications: its connections are as if behind a pooler, so the database itself needs the usual settings. A server that
 * has them already is left as it is.
 */
export function useUsualSettings(database: TestDatabase): Promise<void> {
  return database.administer(`do $$ declare alteration text; begin
    for alteration in
      select format('alter database %I set %s = %L', current_database(), name, boot_val)
      from pg_settings where source = 'command line' and context = 'user'
    loop
      execute alteration;
    end loop;
  end $$`);
}

/** Drops a database that a test has created itself, with its sessions. */
export function dropDatabase(adminUrl: string, name: string): Promise<void> {
  return withClient(adminUrl, (client) => whenFree(client, dropping(name)));
}

const dropping = (name: string) => `drop database if exists ${name} with (force)`;

/** The server waits five seconds for other sessions of a database to end, including those that it terminates. A busy machine takes longer. */
async function whenFree(client: pg.Client, statement: string): Promise<void> {
  for (;;) {
    try {
      await client.query(statement);
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === objectInUse)) throw error;
    }
  }
}

const objectInUse = '55006';

interface Connection {
  readonly application_name: string;
  readonly state: string | null;
  readonly query: string;
}

/** A properly closed connection is still listed for some milliseconds, on a busy machine for seconds: a leak is one that stays. */
async function leakedConnections(
  client: pg.Client,
  database: string,
  longestGoodbyeMs: number,
): Promise<readonly Connection[]> {
  const deadline = Date.now() + longestGoodbyeMs;
  for (;;) {
    const { rows } = await client.query<Connection>(
      `select application_name, state, query
       from pg_stat_activity
       where datname = $1
         and starts_with(application_name, 'refold')`,
      [database],
    );
    if (rows.length === 0 || Date.now() > deadline) return rows;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function leakMessage(leaked: readonly Connection[]): string {
  const lines = leaked.map((c) => `  ${c.application_name} (${c.state ?? 'no state'}): ${c.query}`);
  return `Expected every connection to be closed before the test database is dropped, but found:\n${lines.join('\n')}`;
}

const admins = new Map<string, Promise<pg.Client>>();

/** A connection for all test databases of this process, which does not keep it running. It is opened again if it was lost. */
function adminOf(url: string): Promise<pg.Client> {
  const found = admins.get(url) ?? openAdmin(url);
  admins.set(url, found);
  return found;
}

async function openAdmin(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  client.on('error', () => {}).once('end', () => admins.delete(url));
  try {
    await client.connect();
  } catch (error) {
    admins.delete(url);
    throw error;
  }
  // The driver's types lack this method.
  (client as pg.Client & { unref(): void }).unref();
  return client;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
