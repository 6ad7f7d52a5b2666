/** What waku promises of projections, by number. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  beginning,
  createConsumer,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  type ErrorPolicy,
  eventProcessor,
  type GlobalPosition,
  type PollingOptions,
  type Refold,
  type RetryRule,
  t,
} from '../../src/index.ts';
import { createAdvisoryOwnership } from '../../src/store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../../src/store/ownership/lease-ownership.ts';
import { createMemoryOwnership } from '../../src/store/ownership/memory-ownership.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { createInMemoryLog, givenEvents, untilCaughtUp } from '../../src/testing.ts';
import { applicationFile } from '../cli/application-file.ts';
import { patiently } from '../store/ownership/patient-owner.ts';
import { startCli } from '../support/cli.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { type Application, answers, caughtUp, createApplication, live, statusOf, stopped } from './application.ts';
import { added, cart, itemCount } from './cart.ts';

const step = { actor: 'ann', reason: 'a fixed bug' };
const drops: string[] = [];

/** Leaves a view behind, unless its hook removes it. */
const hooked = defineProjection({
  name: 'hooked_count',
  version: 1,
  events: cart,
  table: { cartId: t.text().primaryKey(), items: t.integer() },
  key: (event) => event.streamId,
  evolve: { ItemAdded: (row, { payload: { quantity } }) => ({ items: (row?.items ?? 0) + quantity }) },
  async setUp({ query, table, schema, tableName }) {
    await query(`create view ${schema}.${tableName}_large as select * from ${table} where items > 10`);
  },
  async tearDown({ query, schema, tableName }) {
    drops.push(tableName);
    await query(`drop view ${schema}.${tableName}_large`);
  },
});

let application: Application;
let shop: Refold;

beforeAll(async () => {
  application = await createApplication();
  shop = await application.start({
    events: [cart],
    projections: [itemCount('plain_count'), itemCount('inline_count', { mode: 'inline' }), hooked],
  });
});
afterAll(() => application.close());

const confirmed = (streamId: string) =>
  ({ family: cart, streamId, events: [{ type: 'Confirmed', payload: {} }] }) as const;

/** A reactor on confirmed carts that fails on the cart of this name. */
const failingOn = (
  poison: string,
  handled: string[],
  onError: { policy: 'stop' | 'skip'; retries: readonly RetryRule[]; onSkip?: () => Promise<void> },
) =>
  defineReactor({
    name: `watch_${poison}`,
    events: cart,
    from: 'beginning',
    handle: {
      async Confirmed({ streamId }) {
        handled.push(streamId);
        if (streamId === poison) throw new Error('not this one');
      },
    },
    onError,
  });

const reactorOf = async (refold: Refold, name: string) =>
  (await refold.reactors.status()).find((reactor) => reactor.name === name);

test('1. An inline projection runs in the scope of the append', async () => {
  await live(shop, 'inline_count@1');
  const seen = application.db.transaction(async (tx) => {
    await shop.log.append(added('w1', 7), tx);
    return tx.query({ text: `select items from read_models.inline_count where cart_id = 'w1'` });
  });
  expect(await seen).toEqual([{ items: 7 }]);
});

test('2. A catch-up projection reads in batches, and keeps a checkpoint', async () => {
  const log = createInMemoryLog();
  await log.append(added('w2', ...Array.from({ length: 25 }, () => 1)));
  const saved: bigint[] = [];
  const archive = eventProcessor({
    id: 'archive',
    events: cart,
    handle: async () => 'ack',
    saveCheckpoint: (position) => void saved.push(position),
  });
  const consumer = createConsumer({ source: log.source, pageSize: 10 });
  consumer.add([archive]);
  await until(() => archive.position === 25n);
  await consumer.stop();
  expect(saved).toEqual([10n, 20n, 25n]);
});

test('3. Event types are filtered by the query that reads the log', async () => {
  await shop.log.append(added('w3', 1));
  await shop.log.append(confirmed('w3'));
  const events = await until(async () => {
    const page = await shop.source.read(beginning, [{ family: 'cart', types: ['Confirmed'] }], 100);
    return page.events.length > 0 && page.events;
  });
  expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['Confirmed']));
});

/** A projection whose table refuses the cart of this name. */
const refusing = (poison: string, onError: ErrorPolicy) =>
  defineProjection({
    name: `count_${poison}`,
    version: 1,
    events: cart,
    table: { cartId: t.text().primaryKey() },
    key: (event) => event.streamId,
    evolve: { Confirmed: () => ({}) },
    onError,
    setUp: async ({ query, table }) => void (await query(`alter table ${table} add check (cart_id <> '${poison}')`)),
  });

/** In another way: `evolve` is pure and would fail again, so a projection tries it again only where a rule names it; appends never wait. */
test('4. After the retries, an event stops its handler (the default) or is skipped; the hook of a skip runs before the checkpoint moves', async () => {
  const [stops, skips]: [string[], string[]] = [[], []];
  let atSkip: GlobalPosition | undefined;
  const retries = [{ times: 1, first: 1 }];
  const process = await application.start({
    reactors: [
      failingOn('stops', stops, { policy: 'stop', retries }),
      failingOn('skips', skips, {
        policy: 'skip',
        retries,
        onSkip: async () => {
          atSkip = (await reactorOf(process, 'watch_skips'))?.position;
        },
      }),
    ],
  });
  await process.log.append(confirmed('stops'));
  const { position } = await process.log.append(confirmed('skips'));
  await process.log.append(confirmed('later'));
  await until(async () => (await reactorOf(process, 'watch_stops'))?.state === 'stopped');
  // Carts are handled at the same time, so the later one may be handled before the hook has ended.
  await until(() => skips.includes('later') && atSkip !== undefined);
  expect(stops.filter((cart) => cart === 'stops')).toHaveLength(2);
  expect(skips.filter((cart) => cart === 'skips')).toHaveLength(2);
  expect(atSkip).toBeLessThan(position);

  let atSkipOfRow: GlobalPosition | undefined;
  const projections = await application.start({
    projections: [
      refusing('refused', { policy: 'stop', retries }),
      refusing('left_out', {
        policy: 'skip',
        retries,
        onSkip: async () => {
          atSkipOfRow = (await statusOf(projections, 'count_left_out@1')).position;
        },
      }),
    ],
  });
  await projections.log.append(confirmed('refused'));
  const leftOut = await projections.log.append(confirmed('left_out'));
  expect(await stopped(projections, 'count_refused@1')).toMatchObject({ retries: 1n });
  await caughtUp(projections, 'count_left_out@1');
  expect(await statusOf(projections, 'count_left_out@1')).toMatchObject({ retries: 1n, eventsSkipped: 1n });
  expect(atSkipOfRow).toBeLessThan(leftOut.position);
});

/** In another way: an outage of the database is waited for without end, whatever handles the event. */
test('5. Retries have a number, a base delay, a maximum delay and grow exponentially', async () => {
  const times: number[] = [];
  const process = await application.start({
    reactors: [
      defineReactor({
        name: 'retried',
        events: cart,
        handle: {
          async Confirmed() {
            times.push(performance.now());
            throw new Error('not now');
          },
        },
        onError: { policy: 'skip', retries: [{ times: 4, first: 10, factor: 2, maxPause: 25, jitter: 0 }] },
      }),
    ],
  });
  const { position } = await process.log.append(confirmed('w5'));
  await until(async () => ((await reactorOf(process, 'retried'))?.position ?? 0n) >= position);
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? time));
  expect(pauses).toHaveLength(4);
  // A pause may be longer on a busy machine, and by a millisecond shorter.
  for (const [index, least] of [10, 20, 25, 25].entries()) expect(pauses[index]).toBeGreaterThanOrEqual(least - 1);

  let broken = true;
  const transient = await application.start({
    projections: [
      defineProjection({
        name: 'tried_count',
        version: 1,
        events: cart,
        table: { cartId: t.text().primaryKey() },
        key: (event) => event.streamId,
        evolve: {
          Confirmed: (_, { streamId }) => {
            if (streamId === 'w5 later' && broken) throw new Error('not now');
            return {};
          },
        },
        onError: {
          policy: 'skip',
          retries: [{ on: 'EVOLVE_FAILED', times: Number.POSITIVE_INFINITY, first: 10, factor: 2, maxPause: 25 }],
        },
      }),
    ],
  });
  await transient.log.append(confirmed('w5 later'));
  await until(async () => (await statusOf(transient, 'tried_count@1')).retries >= 3n);
  broken = false;
  await answers(transient, '{ triedCount(cartId: "w5 later") { cartId } }', { triedCount: { cartId: 'w5 later' } });
  expect(await statusOf(transient, 'tried_count@1')).toMatchObject({ eventsSkipped: 0n, retrying: null });
});

test('6. A hook removes what a projection had set up when a rebuild has replaced its table', async () => {
  await caughtUp(shop, 'hooked_count@1');
  await shop.rebuilds.request('hooked_count@1', step);
  await caughtUp(shop, 'hooked_count@1');
  await application.sql('update refold.old_tables set drop_after = now()');
  await until(() => drops.includes('hooked_count_v1'));
  await until(async () => {
    const views = await application.sql(`select viewname from pg_views where viewname like 'hooked%large'`);
    return JSON.stringify(views) === '[{"viewname":"hooked_count_v1_g2_large"}]';
  });
});

test('7. A projection has one task at a time, and a process runs the ones of its choice', async () => {
  const [chosen, other] = [itemCount('chosen_count'), itemCount('other_count')];
  const process = await application.start({ projections: [chosen, other] }, { only: ['chosen_count@1'], name: 'w7' });
  await caughtUp(process, 'chosen_count@1');
  expect(await statusOf(process, 'chosen_count@1')).toMatchObject({ processor: 'running', owner: 'w7' });
  expect(await statusOf(process, 'other_count@1')).toMatchObject({ processor: 'idle', owner: null, state: 'building' });
  await expect(application.start({ projections: [chosen] }, { only: ['chosen_cuont@1'] })).rejects.toThrow(
    "Did you mean 'chosen_count@1'?",
  );
});

test('8. A process stops in order by SIGTERM, by SIGINT, or by a call', async () => {
  const database = await createTestDatabase();
  const file = await applicationFile('export default defineConfig({ projections: [balanceV1, openingsV1] });');
  const env = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' };
  const db = createDatabase({ url: database.url });
  const isTaken = async (name: string) =>
    (
      await db.query({
        text: 'select from refold.processors where name = $1 and started_at is not null',
        values: [name],
      })
    ).length > 0;
  const ends = (['SIGTERM', 'SIGINT'] as const).map(async (signal) => {
    const worker = startCli(['start', '--role', 'worker', '--only', 'balance@1', '--config', file], { env });
    await worker.prints(/maintains/);
    await until(() => isTaken('balance'));
    return worker.end(signal);
  });
  expect(await Promise.all(ends)).toMatchObject([
    { code: 0, signal: null },
    { code: 0, signal: null },
  ]);
  expect(await isTaken('openings')).toBe(false);
  await db.close();
  await database.drop(); // fails if a connection is open
  const called = await application.start({ projections: [itemCount('called_count')] }, { role: 'worker' });
  await caughtUp(called, 'called_count@1');
  await called.stop();
  expect(await statusOf(shop, 'called_count@1')).toMatchObject({ processor: 'idle', owner: null });
});

test('9. A projection is rebuilt by its name', async () => {
  await shop.log.append(added('w9', 9));
  await caughtUp(shop, 'plain_count@1');
  await application.sql('update read_models.plain_count set items = 0');
  await shop.rebuilds.request('plain_count@1', step);
  await caughtUp(shop, 'plain_count@1');
  await answers(shop, '{ plainCount(cartId: "w9") { items } }', { plainCount: { items: 9 } });
});

/** In another way: the jitter only shortens an interval, so that none is longer than the maximum. */
test('10. The polling interval has a minimum, a maximum, a step and a jitter', async () => {
  expect(() => defineConfig({ runtime: { polling: { min: 5, max: 4 } } })).toThrow('is above max');
  const polled = (polling: PollingOptions) =>
    application.start({
      projections: [itemCount('polled_count')],
      database: { notifications: false },
      runtime: { ownership: 'lease', polling },
    });
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const random = vi.spyOn(Math, 'random');
  const waits = () => timers.mock.calls.map(([, milliseconds]) => milliseconds);
  try {
    // No other timer of a process has these lengths.
    const exact = await polled({ min: 13, max: 307, step: 222, jitter: 0 });
    await until(() => [13, 235, 307].every((wait) => waits().includes(wait)));
    await shop.log.append(added('w10', 10));
    await answers(exact, '{ polledCount(cartId: "w10") { items } }', { polledCount: { items: 10 } });
    await exact.stop();
    random.mockReturnValue(0.5);
    const shortened = await polled({ min: 307, max: 307, step: 1, jitter: 1 });
    await until(() => waits().includes(153.5));
    await shortened.stop();
  } finally {
    timers.mockRestore();
    random.mockRestore();
  }
});

test('11. A position that is not committed yet is never skipped, and one that is rolled back is not waited for', async () => {
  const seen: bigint[] = [];
  const follower = eventProcessor({
    id: 'follower',
    events: cart,
    checkpoint: await shop.log.horizon(),
    handle: async ({ position }) => void seen.push(position),
  });
  const consumer = createConsumer({ source: shop.source });
  consumer.add([follower]);
  const gone = application.db.transaction(async (tx) => {
    await shop.log.append(added('w11 gone', 1), tx);
    throw new Error('rolled back');
  });
  await expect(gone).rejects.toThrow('rolled back');
  const positions: bigint[] = [];
  await application.db.transaction(async (tx) => {
    positions.push((await shop.log.append(added('w11 slow', 1), tx)).position);
    positions.push((await shop.log.append(added('w11', 2))).position);
    expect(seen).toEqual([]);
  });
  await until(() => seen.length === 2);
  await consumer.stop();
  expect(seen).toEqual(positions);
});

test('12. Locks: in memory, leases with time and renewal, and advisory locks; a theft is noticed and cancels the task', async () => {
  const { url } = application;
  const kinds = [
    () => createMemoryOwnership(url),
    () => createLeaseOwnership({ url, leaseSeconds: 300, renewalFactor: 1 / 10 }),
    () => createAdvisoryOwnership({ url }),
  ];
  for (const open of kinds) {
    const [one, two] = [open(), open()];
    const lock = await patiently(one, 'w12');
    expect(await patiently(two, 'w12')).toBeNull();
    await lock?.release();
    await until(() => patiently(two, 'w12'));
    await Promise.all([one.close(), two.close()]);
  }
  const leases = createLeaseOwnership({ url, leaseSeconds: 60, renewalFactor: 1 / 60 });
  const lease = await patiently(leases, 'stolen');
  await application.sql(`update refold.leases set holder = gen_random_uuid() where name = 'stolen'`);
  await until(() => lease?.lost.aborted);
  await leases.close();
  const runtime = { ownership: 'memory' } as const;
  const process = await application.start({ projections: [itemCount('alone_count')], runtime }, { role: 'worker' });
  await caughtUp(process, 'alone_count@1');
});

/** In another way: a consumer of your own keeps its checkpoint where you choose; those of read tables and reactors are in PostgreSQL. */
test('13. Checkpoints are kept in memory or in PostgreSQL', async () => {
  const log = createInMemoryLog();
  const store = new Map<string, GlobalPosition>();
  const seen: bigint[] = [];
  for (const quantity of [1, 2]) {
    await log.append(added('w13', quantity));
    const archive = eventProcessor({
      id: 'archive',
      events: cart,
      checkpoint: store.get('archive') ?? beginning,
      handle: async ({ position }) => void seen.push(position),
      saveCheckpoint: (position) => void store.set('archive', position),
    });
    const consumer = createConsumer({ source: log.source });
    consumer.add([archive]);
    await until(() => archive.position === BigInt(quantity));
    await consumer.stop();
  }
  expect(seen).toEqual([1n, 2n]);
  const { position } = await shop.log.append(added('w13', 13));
  await caughtUp(shop, 'plain_count@1');
  const [row] = await application.sql<{ checkpoint: bigint }>(
    `select checkpoint from refold.processors where name = 'plain_count'`,
  );
  expect(row?.checkpoint).toBeGreaterThanOrEqual(position);
});

test('14. The log is the outbox: what commits is published, and nothing else', async () => {
  const published: string[] = [];
  const relay = defineReactor({
    name: 'outbox',
    events: cart,
    from: 'now',
    handle: { Confirmed: async ({ streamId }) => void published.push(streamId) },
  });
  const process = await application.start({ reactors: [relay] });
  const rolledBack = application.db.transaction(async (tx) => {
    await process.log.append(confirmed('w14 not'), tx);
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  await process.log.append(confirmed('w14'));
  await until(() => published.includes('w14'));
  expect(published).toEqual(['w14']);
});

test('15. Tests have a log in memory, and wait for projections', async () => {
  const log = createInMemoryLog();
  await log.append(added('w15', 1, 2));
  expect(log.stream(cart, 'w15')).toHaveLength(2);
  await givenEvents(added('w15', 1, 2))
    .projectedBy(itemCount('any_count'))
    .thenRows({ cartId: 'w15', items: 3 });
  await shop.log.append(added('w15', 5));
  const plain = { log: shop.log, status: async () => [await statusOf(shop, 'plain_count@1')] };
  await untilCaughtUp(plain, { timeout: 240_000 });
  await answers(shop, '{ plainCount(cartId: "w15") { items } }', { plainCount: { items: 5 } });
});

test('16. Events in older shapes are upcast for projections', async () => {
  const fee = defineEvents(
    'fee',
    { Charged: z.object({ cents: z.number() }) },
    { upcasters: { Charged: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] } },
  );
  const total = defineProjection({
    name: 'fee_total',
    version: 1,
    events: fee,
    table: { feeId: t.text().primaryKey(), cents: t.integer() },
    key: (event) => event.streamId,
    evolve: { Charged: (row, { payload }) => ({ cents: (row?.cents ?? 0) + payload.cents }) },
  });
  const old = { type: 'Charged', payload: { euros: 3 }, payloadVersion: 1 };
  const events = [old, { type: 'Charged', payload: { cents: 50 } }];
  await givenEvents({ family: fee, streamId: 'f', events }).projectedBy(total).thenRows({ feeId: 'f', cents: 350 });
});
