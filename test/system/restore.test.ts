import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { beginning, type Config, defineConfig, type RecordedEvent } from '../../src/index.ts';
import { requestRebuild } from '../../src/runtime/rebuild.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { readRegistry } from '../../src/store/registry.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { type PostgresCluster, startPostgresCluster } from '../support/postgres-cluster.ts';
import { databaseUrl } from '../support/postgres-for-the-run.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const projections = [balanceV1, balanceV2, openingsV1];
const random = seeded(20_261_121);

let database: TestDatabase;
let db: Database;
let log: EventLog;
let elsewhere: PostgresCluster;
let folder: string;
const running = new Set<Runtime>();

// The programs of PostgreSQL that are of the server's version: the one that dumps must not be older.
const program = (name: string) => join(dirname(inject('postgres').binaries?.postgres ?? ''), name);

beforeAll(async () => {
  const { binaries } = inject('postgres');
  if (!binaries) throw new Error('The drill needs the programs of its server; run it with npm run test:system.');
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
  elsewhere = await startPostgresCluster({ binaries });
  folder = await mkdtemp(join(tmpdir(), 'refold-restore-'));
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
});
afterAll(async () => {
  await db.close();
  await database.drop();
  await elsewhere.stop();
  await rm(folder, { recursive: true, force: true });
});

async function start(url: string, ownership: 'advisory' | 'lease'): Promise<Runtime> {
  const config: Config = defineConfig({
    projections,
    runtime: { pageSize: 100, ownership, ...(ownership === 'lease' ? { leaseSeconds: 2 } : {}) },
  });
  const logger = pino({ level: process.env.LOG ?? 'silent' });
  const runtime = await startRuntime({ config, url, owner: 'drill', development: false, maintain: true, logger });
  running.add(runtime);
  return runtime;
}

/** Appends until `work` is done: many at once, and one that commits late, so that the dump falls between all of them. */
async function underLoad<T>(work: () => Promise<T>): Promise<T> {
  let working = true;
  const late = (async () => {
    while (working) {
      await db.transaction(async (tx) => {
        const event = { type: 'Credited', payload: { amount: '1.00' } } as const;
        await log.append({ family: account, streamId: 'late', events: [event] }, tx);
        const head = await log.head();
        await until(async () => !working || (await log.head()) > head + 50n);
      });
    }
  })();
  const many = (async () => {
    while (working) await traffic(log, 20, random);
  })();
  try {
    return await work();
  } finally {
    working = false;
    await Promise.all([late, many]);
  }
}

async function everything(of: EventLog): Promise<RecordedEvent[]> {
  const upTo = await of.horizon();
  const events: RecordedEvent[] = [];
  for (let after = beginning; after < upTo; ) {
    const page = await of.readAll({ after, upTo, limit: 10_000 });
    events.push(...page.events);
    after = page.upTo;
  }
  return events;
}

async function expectFolds(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).every(
      ({ position, state, rebuild }) => position >= horizon && state === 'active' && rebuild === null,
    ),
  );
  await runtime.versions.refresh();
  for (const projection of projections) {
    const stored = runtime.versions.stored(projection);
    expect(await storedTable(runtime.db, stored), projection.id).toEqual(await foldedTable(runtime.log, projection));
  }
}

test.each([
  'advisory',
  'lease',
] as const)('a dump that was made under load goes on in another cluster as if nothing had been (%s)', async (ownership) => {
  const dump = join(folder, `${ownership}.dump`);
  const source = await start(database.url, ownership);
  await log.append({
    family: account,
    streamId: `once-${ownership}`,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
    idempotencyKey: `before the dump, ${ownership}`,
  });
  await underLoad(async () => {
    await traffic(log, 1_500, random);
    // Active they may have been while the log was still empty.
    await until(async () =>
      (await source.status()).every(({ state, position }) => state === 'active' && position > 0n),
    );
    // One that is under way when it is dumped.
    await requestRebuild(db, balanceV1, 'read_models', { actor: 'drill', reason: 'in the middle of a dump' });
    await run(program('pg_dump'), ['--format=custom', `--file=${dump}`, database.url]);
    await traffic(log, 200, random);
  });

  const admin = createDatabase({ url: elsewhere.url });
  await admin.query({ text: `create database drill_${ownership}` });
  await admin.close();
  const url = databaseUrl(elsewhere.url, `drill_${ownership}`);
  await run(program('pg_restore'), ['--exit-on-error', `--dbname=${url}`, dump]);
  const restored = createDatabase({ url });
  const restoredLog = createEventLog(restored, [account]);

  // Nothing is in it that the source does not have in the same place, and nothing is missing below a checkpoint.
  const original = new Map((await everything(log)).map((event) => [event.position, event]));
  const dumped = await everything(restoredLog);
  expect(dumped.length).toBeGreaterThan(1_500);
  for (const event of dumped) expect(event).toEqual(original.get(event.position));
  for (const { name, checkpoint } of await readRegistry(restored)) {
    expect(checkpoint).toBeGreaterThan(0n);
    const below = (events: Iterable<RecordedEvent>) => [...events].filter(({ position }) => position <= checkpoint);
    expect(below(dumped), name).toHaveLength(below(original.values()).length);
  }

  // It goes on: positions rise, streams have no gap, a key that was used is known, rows are folded once and in order.
  const head = await restoredLog.head();
  const again = await restoredLog.append({
    family: account,
    streamId: `once-${ownership}`,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
    idempotencyKey: `before the dump, ${ownership}`,
  });
  expect(again.duplicate).toBe(true);
  const runtime = await start(url, ownership);
  await traffic(restoredLog, 500, random);
  const after = await everything(restoredLog);
  expect(after.slice(0, dumped.length)).toEqual(dumped);
  expect(after.slice(dumped.length).every(({ position }) => position > head)).toBe(true);
  expect(after).toHaveLength(dumped.length + 500);
  for (const [stream, events] of Map.groupBy(after, ({ streamId }) => streamId)) {
    expect(
      events.map(({ streamPosition }) => streamPosition),
      stream,
    ).toEqual(events.map((_, index) => index + 1));
  }
  await expectFolds(runtime);
  await restored.close();
});
