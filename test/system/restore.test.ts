import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { expectation } from '../../chaos/expectation.ts';
import { beginning, type Config, defineConfig, type Projection, type RecordedEvent } from '../../src/index.ts';
import { listDeadLetters, retryDeadLetters } from '../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { inlineBalance } from '../support/inline-domain.ts';
import { type PostgresCluster, startPostgresCluster } from '../support/postgres-cluster.ts';
import { databaseUrl } from '../support/postgres-for-the-run.ts';
import { account, balanceV1, balanceV2, inPartitions, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { doubtful, greeter, greeting, poison } from './restore-domain.ts';

const run = promisify(execFile);
/** Each equals a fold of the log that leaves nothing out. */
const folds: readonly Projection[] = [balanceV1, balanceV2, inPartitions(openingsV1, 3), inlineBalance];
const projections: readonly Projection[] = [...folds, doubtful(false)];
const readSchema = 'read_models';
const step = { actor: 'drill', reason: 'in the middle of a dump' };
const open = Promise.resolve();
const random = seeded(20_261_121);

let database: TestDatabase;
let db: Database;
let log: EventLog;
let elsewhere: PostgresCluster;
let folder: string;
const running = new Set<Runtime>();

// PostgreSQL's programs in the server's version: the dump program must not be older.
const program = (name: string) => join(dirname(inject('postgres').binaries?.postgres ?? ''), name);

beforeAll(async () => {
  const { binaries } = inject('postgres');
  if (!binaries) throw new Error('The drill needs the programs of its server; run it with npm run test:system.');
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account, greeting]);
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

async function start(url: string, ownership: 'advisory' | 'lease', gate = open): Promise<Runtime> {
  const config: Config = defineConfig({
    events: [greeting],
    projections,
    reactors: [greeter(gate)],
    runtime: { pageSize: 100, ownership, ...(ownership === 'lease' ? { leaseSeconds: 2 } : {}) },
  });
  const logger = pino({ level: process.env.LOG ?? 'silent' });
  const runtime = await startRuntime({ config, url, owner: 'drill', development: false, maintain: true, logger });
  running.add(runtime);
  return runtime;
}

/** Appends until `work` is done: many at once, and one that commits late, so the dump begins in the middle of them. */
async function underLoad<T>(source: Runtime, work: () => Promise<T>): Promise<T> {
  let working = true;
  const late = (async () => {
    while (working) {
      await source.db.transaction(async (tx) => {
        const event = { type: 'Credited', payload: { amount: '1.00' } } as const;
        await source.log.append({ family: account, streamId: 'late', events: [event] }, tx);
        const head = await log.head();
        await until(async () => !working || (await log.head()) > head + 50n);
      });
    }
  })();
  const many = (async () => {
    while (working) await traffic(source.log, 20, random);
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
  for (const projection of folds) {
    const stored = runtime.versions.stored(projection);
    expect(await storedTable(runtime.db, stored), projection.id).toEqual(await foldedTable(runtime.log, projection));
  }
}

/** Expects the rows and dead letters of `doubtful` to match the log; after a retry with fixed code, there are no dead letters. */
async function expectLetters({ db, log }: Runtime): Promise<void> {
  const none = { discarded: new Set<string>(), healed: new Set<string>() };
  const events = await everything(log);
  const expected = expectation(doubtful(false), events, none);
  expect(await storedTable(db, doubtful(false))).toEqual(expected.rows);
  const options = { db, log, readSchema, projection: doubtful(true) };
  const letters = (await listDeadLetters(options)).map(({ key, position, error }) => [
    JSON.stringify(key),
    position,
    error !== null,
  ]);
  expect(letters).toEqual(expected.letters);
  expect(letters.filter(([, , failed]) => !failed).length).toBeGreaterThan(0);
  expect(await retryDeadLetters(options, step)).toMatchObject({ left: 0 });
  expect(await storedTable(db, doubtful(true))).toEqual(expectation(doubtful(true), events, none).rows);
}

/** Expects each step once, in order, for each opened account. */
async function expectGreetings({ db, log }: Runtime): Promise<void> {
  const horizon = await log.horizon();
  await until(async () => (await readReactors(db)).every(({ checkpoint }) => checkpoint >= horizon));
  const events = await everything(log);
  const opened = events.filter(({ type }) => type === 'Opened').map(({ id }) => id);
  const greeted = Map.groupBy(greetings(events), ({ streamId }) => streamId);
  expect([...greeted.keys()].toSorted()).toEqual(opened.toSorted());
  for (const [id, steps] of greeted) expect(steps.map(stepOf), id).toEqual(['first', 'second']);
}

const greetings = (events: readonly RecordedEvent[]) => events.filter(({ family }) => family === greeting.name);
const stepOf = ({ payload }: RecordedEvent) => (payload as { readonly step: string }).step;

test.each([
  'advisory',
  'lease',
] as const)('a dump made under load continues in another cluster without loss or repetition (%s)', async (ownership) => {
  const dump = join(folder, `${ownership}.dump`);
  const { promise: gate, resolve: letGo } = Promise.withResolvers<void>();
  const source = await start(database.url, ownership, gate);
  await source.log.append({
    family: account,
    streamId: `once-${ownership}`,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
    idempotencyKey: `before the dump, ${ownership}`,
  });
  for (const amount of ['1.00', poison, '2.00'])
    await source.log.append({
      family: account,
      streamId: `doubtful-${ownership}`,
      events: [{ type: 'Credited', payload: { amount } }],
    });
  await until(async () => (await source.status()).every(({ inline }) => inline !== 'building'));
  await underLoad(source, async () => {
    await traffic(source.log, 1_500, random);
    // They may have become active while the log was still empty.
    await until(async () =>
      (await source.status()).every(({ state, position }) => state === 'active' && position > 0n),
    );
    await takeSnapshot({ db, readSchema, name: 'balance', version: 2 }, step);
    // A rebuild and a workflow are in progress during the dump.
    await requestRebuild(db, balanceV1, readSchema, step);
    await until(async () => greetings(await everything(log)).some((event) => stepOf(event) === 'first'));
    await run(program('pg_dump'), ['--format=custom', `--file=${dump}`, database.superuserUrl]);
    await traffic(source.log, 200, random);
  });
  letGo();

  const admin = createDatabase({ url: elsewhere.url });
  await admin.query({ text: `create database drill_${ownership}` });
  await admin.close();
  const url = databaseUrl(elsewhere.url, `drill_${ownership}`);
  await run(program('pg_restore'), ['--exit-on-error', '--no-owner', '--no-acl', `--dbname=${url}`, dump]);
  const restored = createDatabase({ url });
  const restoredLog = createEventLog(restored, [account, greeting]);

  // The copy holds only what the source has in the same place, and lacks nothing below a checkpoint.
  const original = new Map((await everything(log)).map((event) => [event.position, event]));
  const dumped = await everything(restoredLog);
  expect(dumped.length).toBeGreaterThan(1_500);
  for (const event of dumped) expect(event).toEqual(original.get(event.position));
  for (const { name, checkpoint, inline } of await readRegistry(restored)) {
    // A live version is at the end of the log by definition: every append in the dump was folded into it.
    if (inline === 'live') continue;
    expect(checkpoint).toBeGreaterThan(0n);
    const below = (events: Iterable<RecordedEvent>) => [...events].filter(({ position }) => position <= checkpoint);
    expect(below(dumped), name).toHaveLength(below(original.values()).length);
  }

  const steps = Map.groupBy(greetings(dumped), stepOf);
  expect(steps.get('first')?.length).toBeGreaterThan(steps.get('second')?.length ?? 0);

  // Work continues: positions rise, streams have no gap, a used key is known, rows are folded once and in order.
  const head = await restoredLog.head();
  const runtime = await start(url, ownership);
  const again = await runtime.log.append({
    family: account,
    streamId: `once-${ownership}`,
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
    idempotencyKey: `before the dump, ${ownership}`,
  });
  expect(again.duplicate).toBe(true);
  // Inline appends continue, whichever locks were held in the source: a read after an append sees its rows.
  const inline = async () => (await runtime.status()).find(({ name }) => name === inlineBalance.name)?.inline;
  await until(async () => (await inline()) === 'live');
  const opening = { type: 'Opened', payload: { owner: 'Eve' } } as const;
  await runtime.log.append({ family: account, streamId: `new-${ownership}`, events: [opening] });
  expect((await storedTable(runtime.db, inlineBalance)).get(JSON.stringify([`new-${ownership}`]))).toMatchObject({
    owner: 'Eve',
  });
  expect(await inline()).toBe('live');
  // A snapshot taken in the source can start a rebuild here.
  await requestRebuild(runtime.db, balanceV2, readSchema, step, { log: runtime.log, snapshot: 'latest' });
  await traffic(runtime.log, 500, random);
  await expectGreetings(runtime);
  await expectFolds(runtime);
  await expectLetters(runtime);

  const after = await everything(restoredLog);
  expect(after.slice(0, dumped.length)).toEqual(dumped);
  expect(after.slice(dumped.length).every(({ position }) => position > head)).toBe(true);
  expect(after.length - greetings(after).length).toBe(dumped.length - greetings(dumped).length + 501);
  for (const [stream, events] of Map.groupBy(after, ({ streamId }) => streamId)) {
    expect(
      events.map(({ streamPosition }) => streamPosition),
      stream,
    ).toEqual(events.map((_, index) => index + 1));
  }
  await restored.close();
});
