import { pino } from 'pino';
import { expect } from 'vitest';
import {
  type ConfigOptions,
  createRefold,
  defineConfig,
  type Projection,
  type Refold,
  type RefoldOptions,
  type VersionStatus,
} from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { settingsOfStatements } from '../../src/store/postgres/session-settings.ts';
import { untilAnswer } from '../../src/testing.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** A database that the tests of a file share, and the processes of an application that they start on it. */
export interface Application {
  readonly url: string;
  /** For transactions of the tests' own. */
  readonly db: Database;
  /** Rows of a statement. */
  sql<Row extends object>(text: string): Promise<readonly Row[]>;
  /**
   * Starts a process. It maintains what is declared here, and also declares what former processes declared: no version that serves clients may
   * be missing.
   */
  start(declared: ConfigOptions, options?: RefoldOptions): Promise<Refold>;
  close(): Promise<void>;
}

export async function createApplication(): Promise<Application> {
  const database = await createTestDatabase();
  const { url } = database;
  const name = new URL(url).pathname.slice(1);
  // Processes that poll can't set these for themselves, and the test server has other defaults.
  for (const [setting, value] of Object.entries(settingsOfStatements))
    await database.administer(`alter database ${name} set ${setting} = '${value}'`);
  const db = createDatabase({ url });
  const running = new Set<Refold>();
  const known = new Map<string, Projection>();
  return {
    url,
    db,
    sql: (text) => db.query({ text }),
    async start(declared, options = {}) {
      const { projections = [], reactors = [] } = declared;
      for (const projection of projections) known.set(projection.id, projection);
      const only = [...projections.map(({ id }) => id), ...reactors.map(({ name }) => name)];
      const config = defineConfig({
        development: false,
        ...declared,
        projections: [...known.values()],
        database: { url, ...declared.database },
        gateway: { port: 0, positionTimeout: patience.timeout, ...declared.gateway },
      });
      const refold = await createRefold(config, {
        logger: pino({ level: process.env.LOG ?? 'silent' }),
        ...(options.role === 'gateway' || only.length === 0 ? {} : { only }),
        ...options,
      });
      running.add(refold);
      return refold;
    },
    async close() {
      for (const refold of running) await refold.stop();
      await db.close();
      await database.drop();
    },
  };
}

// In milliseconds. Only a test that would hang meets it.
const patience = { timeout: 240_000 };

/** Waits until the GraphQL API answers exactly this. */
export function answers(refold: Refold, query: string, expected: Readonly<Record<string, unknown>>): Promise<void> {
  return untilAnswer(refold, query, expected, patience);
}

/** Expects that the GraphQL API refuses the query, with a message that contains this. */
export async function refuses(refold: Refold, query: string, message: string): Promise<void> {
  const { errors = [] } = await refold.graphql(query);
  expect(errors.map((error) => error.message).join('\n')).toContain(message);
}

export async function statusOf(refold: Pick<Refold, 'status'>, version: string): Promise<VersionStatus> {
  const found = (await refold.status()).find((one) => `${one.name}@${one.version}` === version);
  if (!found) throw new Error(`There is no ${version}.`);
  return found;
}

/** Waits until versions have caught up with everything that was appended before the call, and no rebuild of them is left. */
export async function caughtUp(refold: Refold, ...versions: readonly string[]): Promise<void> {
  const head = await refold.log.head();
  for (const version of versions) {
    await until(async () => {
      const { state, position, rebuild } = await statusOf(refold, version);
      return (state === 'ready' || state === 'active') && position >= head && rebuild === null;
    });
  }
}

/** Waits until the rows of an inline version commit with appends. */
export async function live(refold: Refold, version: string): Promise<void> {
  await until(async () => (await statusOf(refold, version)).inline === 'live');
}

/** Waits until a processor has stopped at an event, and returns its status. */
export function stopped(refold: Refold, version: string): Promise<VersionStatus> {
  return until(async () => {
    const status = await statusOf(refold, version);
    return status.processor === 'stopped' && status;
  });
}
