/** What the incremental and replayable projection pattern in PostgreSQL promises, by number. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { beginning, defineEvents, defineProjection, type FoldFailure, type Refold, t } from '../../src/index.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { diffVersions } from '../../src/runtime/verification/diff.ts';
import { verifyVersion } from '../../src/runtime/verification/verify.ts';
import { until } from '../support/until.ts';
import { type Application, answers, caughtUp, createApplication, statusOf, stopped } from './application.ts';
import { added, cart, itemAndLineCount, itemCount } from './cart.ts';

const step = { actor: 'ann', reason: 'prices were doubled' };
const readSchema = 'read_models';

/** Sales of shops. A booking that arrives late counts for its own day; a correction is an event, too. */
const sale = defineEvents('sale', {
  Booked: z.object({ day: z.string(), amount: z.string() }),
  Corrected: z.object({ day: z.string(), was: z.string(), is: z.string() }),
});

/** Set-based: the parts of each event are staged before they are summed up. */
const turnover = defineProjection({
  name: 'turnover',
  version: 1,
  events: sale,
  table: { day: t.date().primaryKey(), bookings: t.integer(), amount: t.decimal(18, 2) },
  onError: 'skip',
  evolveSql: {
    events: ['Booked', 'Corrected'],
    stages: {
      part: `
        select (payload->>'day')::date as day, 1 as bookings, (payload->>'amount')::numeric as amount
        from batch
        where type = 'Booked'
        union all
        select (payload->>'day')::date, 0, (payload->>'is')::numeric - (payload->>'was')::numeric
        from batch
        where type = 'Corrected'`,
    },
    rows: `
      select day, sum(bookings) as bookings, sum(amount) as amount
      from part
      group by day`,
    merge: { bookings: 'add', amount: 'add' },
  },
});

const booked = (streamId: string, ...bookings: readonly (readonly [day: string, amount: string])[]) => {
  const events = bookings.map(([day, amount]) => ({ type: 'Booked', payload: { day, amount } }) as const);
  return { family: sale, streamId, events };
};

const amountsOfDays = {
  version: 1,
  events: sale,
  table: { day: t.date().primaryKey(), amount: t.decimal(18, 2) },
  key: ({ payload }: { readonly payload: { readonly day: string } }) => payload.day,
  evolveSql: {
    events: ['Booked'],
    rows: `
      select (payload->>'day')::date as day, sum((payload->>'amount')::numeric) as amount
      from batch
      group by 1`,
    merge: { amount: 'add' },
  },
} as const;
const carefulTurnover = defineProjection({ name: 'careful_turnover', ...amountsOfDays, onError: 'dead-letter' });
const sharedTurnover = defineProjection({
  name: 'shared_turnover',
  ...amountsOfDays,
  onError: 'skip',
  partitions: 3,
});

const skipped: FoldFailure[] = [];
const isPoison = (quantity: number) => quantity === 666;
const tolerant = itemCount('tolerant_count', {
  fails: isPoison,
  onError: { policy: 'skip', onSkip: (failure) => skipped.push(failure) },
});
const careful = itemCount('careful_count', { fails: isPoison, onError: 'dead-letter' });
const strict = itemCount('strict_count', { fails: isPoison });

let application: Application;
let worker: Refold;

beforeAll(async () => {
  application = await createApplication();
  worker = await application.start({
    events: [cart],
    projections: [
      turnover,
      itemCount('plain_count'),
      itemCount('old_count'),
      itemCount('shared_count', { partitions: 4 }),
      sharedTurnover,
    ],
  });
  await caughtUp(worker, 'turnover@1', 'plain_count@1', 'old_count@1', 'shared_count@1');
});
afterAll(() => application.close());

/** The work of a processor, from the run log. */
async function workOf(name: string) {
  const [row] = await application.sql<{ events: bigint; rows: bigint; batches: bigint }>(
    `select sum(events)::bigint as events, sum(rows)::bigint as rows, sum(batches)::bigint as batches
     from refold.runs where name = '${name}' and kind = 'processor'`,
  );
  return row ?? { events: 0n, rows: 0n, batches: 0n };
}

/** In another way: notes are the reasons in the audit log; every rebuild and transition has one. */
test('1. Each projection has a checkpoint: position, time, status, worker and notes', async () => {
  const { position } = await worker.log.append(added('a', 1));
  await caughtUp(worker, 'plain_count@1');
  const [row] = await application.sql(
    `select checkpoint >= ${position} as reached, updated_at <= now() as past, status, owner is not null as owned
     from refold.processors where name = 'plain_count'`,
  );
  expect(row).toEqual({ reached: true, past: true, status: 'running', owned: true });
  const [note] = await application.sql(
    `select to_state, reason from refold.transitions where name = 'plain_count' order by id desc limit 1`,
  );
  expect(note).toEqual({ to_state: 'active', reason: expect.stringContaining("activation 'auto'") });
});

test('2. Batches are bounded, and the same selection returns the same events in the same order', async () => {
  await worker.log.append(added('b', ...Array.from({ length: 25 }, (_, n) => n)));
  const filter = [{ family: 'cart', types: ['ItemAdded'] }];
  const read = async () => {
    const positions: bigint[] = [];
    const head = await worker.log.horizon();
    for (let after = beginning; after < head; ) {
      const page = await worker.log.readAll({ after, upTo: head, filter, limit: 10 });
      expect(page.events.length).toBeLessThanOrEqual(10);
      positions.push(...page.events.map(({ position }) => position));
      after = page.upTo;
    }
    return positions;
  };
  const positions = await read();
  expect(positions).toEqual(positions.toSorted((a, b) => Number(a - b)));
  expect(await read()).toEqual(positions);
});

test('3. Rows and checkpoint move in one transaction: whenever one looks, the rows are those of the checkpoint', async () => {
  let appending = true;
  const seen: unknown[] = [];
  const reader = (async () => {
    while (appending) {
      seen.push(
        ...(await application.sql(
          `select
             (select coalesce(sum(items), 0) from read_models.plain_count) = coalesce(sum((payload->>'quantity')::int), 0) as whole
           from refold.events
           where type = 'ItemAdded'
             and position <= (select checkpoint from refold.processors where name = 'plain_count')`,
        )),
      );
    }
  })();
  for (let n = 0; n < 40; n++) await worker.log.append(added(`c${n % 3}`, 1, 2, 3));
  await caughtUp(worker, 'plain_count@1');
  appending = false;
  await reader;
  expect(new Set(seen.map((one) => JSON.stringify(one)))).toEqual(new Set(['{"whole":true}']));
});

test('4. Set-based: one statement writes each key of a batch once', async () => {
  const before = await workOf('turnover');
  const bookings = Array.from({ length: 100 }, (_, n) => [n % 2 === 0 ? '2026-01-01' : '2026-01-02', '1.50'] as const);
  await worker.log.append(booked('s4', ...bookings));
  await caughtUp(worker, 'turnover@1');
  await answers(worker, '{ turnover(day: "2026-01-01") { bookings amount } }', {
    turnover: { bookings: 50, amount: '75.00' },
  });
  const after = await workOf('turnover');
  expect({ events: after.events - before.events, rows: after.rows - before.rows }).toEqual({ events: 100n, rows: 2n });
});

/** In another way: the status of an owned processor is `running`; a lag of no events says that it has nothing to do. */
test('5. A batch without events changes no row, and the processor has nothing to do', async () => {
  await caughtUp(worker, 'turnover@1');
  const before = await workOf('turnover');
  const { position } = await worker.log.append(added('e', 1));
  await until(async () => (await statusOf(worker, 'turnover@1')).position >= position);
  const { events, rows } = await workOf('turnover');
  expect({ events, rows }).toEqual({ events: before.events, rows: before.rows });
  expect(await statusOf(worker, 'turnover@1')).toMatchObject({ processor: 'running', lagEvents: 0n });
});

test('6. A failing event stops, is skipped or becomes a dead letter, as declared, with its reason; a replay finds the same ones', async () => {
  const process = await application.start({ projections: [strict, tolerant, careful, carefulTurnover] });
  await caughtUp(process, 'strict_count@1', 'tolerant_count@1', 'careful_count@1', 'careful_turnover@1');
  await process.log.append(added('well', 1));
  await process.log.append(added('ill', 1, 666, 2));
  const { error } = await stopped(process, 'strict_count@1');
  expect(error?.message).toContain("666 items can't be counted");
  await caughtUp(process, 'tolerant_count@1', 'careful_count@1');
  await answers(process, '{ tolerantCount(cartId: "ill") { items } carefulCount(cartId: "ill") { items } }', {
    tolerantCount: { items: 3 },
    carefulCount: { items: 1 },
  });
  expect(skipped.map(({ event }) => event.payload)).toEqual([{ quantity: 666 }]);
  expect((await statusOf(process, 'tolerant_count@1')).eventsSkipped).toBe(1n);
  const letters = (name: string, reason: string) =>
    application.sql<{ failed: boolean | null }>(
      `select position, error ->> 'message' like '%${reason}%' as failed
       from refold.dead_letters where name = '${name}' order by position`,
    );
  const kept = await letters('careful_count', `666 items can''t be counted`);
  expect(kept).toMatchObject([{ failed: true }, { failed: null }]);
  await process.rebuilds.request('careful_count@1', step);
  await caughtUp(process, 'careful_count@1');
  expect(await letters('careful_count', `666 items can''t be counted`)).toEqual(kept);

  // Set-based: the event is found by bisection.
  const days = Array.from({ length: 20 }, (_, n) => [`2026-06-0${1 + (n % 2)}`, n === 6 ? 'much' : '1.00'] as const);
  await process.log.append(booked('s6', ...days));
  await caughtUp(process, 'careful_turnover@1');
  const amounts = async () =>
    answers(
      process,
      '{ first: carefulTurnover(day: "2026-06-01") { amount } second: carefulTurnover(day: "2026-06-02") { amount } }',
      { first: { amount: '3.00' }, second: { amount: '10.00' } },
    );
  await amounts();
  const keptBySql = await letters('careful_turnover', 'invalid input syntax for type numeric');
  expect(keptBySql.map(({ failed }) => failed)).toEqual([true, null, null, null, null, null, null]);
  await process.rebuilds.request('careful_turnover@1', step);
  await caughtUp(process, 'careful_turnover@1');
  await amounts();
  expect(await letters('careful_turnover', 'invalid input syntax for type numeric')).toEqual(keptBySql);
});

test('7. A table is rebuilt from the whole log', async () => {
  await caughtUp(worker, 'plain_count@1');
  await worker.log.append(added('wrong', 2));
  await caughtUp(worker, 'plain_count@1');
  await application.sql(`update read_models.plain_count set items = 99`);
  await worker.rebuilds.request('plain_count@1', step);
  await caughtUp(worker, 'plain_count@1');
  await answers(worker, '{ plainCount(cartId: "wrong") { items } }', { plainCount: { items: 2 } });
});

test('8. A bounded replay starts from a snapshot of the table with its position', async () => {
  await worker.log.append(added('bounded', 1));
  await caughtUp(worker, 'old_count@1');
  const version = { name: 'old_count', version: 1 };
  const { id, checkpoint } = await takeSnapshot({ db: application.db, readSchema, ...version }, step);
  await worker.log.append(added('bounded', 2, 3));
  await caughtUp(worker, 'old_count@1');
  await application.sql(`update read_models.old_count set items = 99`);
  await worker.rebuilds.request('old_count@1', { ...step, from: 'latest' });
  await caughtUp(worker, 'old_count@1');
  await answers(worker, '{ oldCount(cartId: "bounded") { items } }', { oldCount: { items: 6 } });
  const [row] = await application.sql<{ reason: string }>(
    `select reason from refold.transitions where name = 'old_count' order by id desc limit 1`,
  );
  expect(row?.reason).toMatch(new RegExp(`from snapshot ${id} at position ${checkpoint}, 2 events folded`));
});

test('9. Two versions run in parallel and are compared; readers are switched, switched back, and the old version is retired', async () => {
  const [v1, v2] = [itemCount('compared_count'), itemAndLineCount('compared_count', { activation: 'manual' })];
  const process = await application.start({ projections: [v1, v2] });
  await process.log.append(added('compared', 4, 5));
  await caughtUp(process, v1.id, v2.id);
  await until(async () => (await statusOf(process, v1.id)).position === (await statusOf(process, v2.id)).position);
  const difference = await diffVersions(application.db, readSchema, v1, v2);
  expect(difference).toMatchObject({ onlyOlder: 0, onlyNewer: 0, samples: [] });
  const switchTo = (version: number) => process.lifecycle.activate('compared_count', version, step);
  const lines = '{ comparedCount(cartId: "compared") { lines } }';
  await switchTo(2);
  await answers(process, lines, { comparedCount: { lines: 2 } });
  await process.lifecycle.rollback('compared_count', step);
  await answers(process, '{ comparedCount(cartId: "compared") { items } }', { comparedCount: { items: 9 } });
  await switchTo(2);
  await process.lifecycle.retire('compared_count', 1, step);
  await answers(process, lines, { comparedCount: { lines: 2 } });
  expect((await statusOf(process, v1.id)).state).toBe('retired');
});

test('10. Late events land in the bucket of their own time', async () => {
  await worker.log.append(booked('s10', ['2026-02-02', '5.00']));
  await worker.log.append(booked('s10', ['2026-02-01', '1.00']));
  await worker.log.append(booked('s10', ['2026-02-02', '2.00']));
  await answers(
    worker,
    '{ first: turnover(day: "2026-02-01") { amount } second: turnover(day: "2026-02-02") { amount } }',
    {
      first: { amount: '1.00' },
      second: { amount: '7.00' },
    },
  );
});

test('11. Corrections are events', async () => {
  await worker.log.append(booked('s11', ['2026-03-01', '50.00']));
  const corrected = { type: 'Corrected', payload: { day: '2026-03-01', was: '50.00', is: '5.00' } } as const;
  await worker.log.append({ family: sale, streamId: 's11', events: [corrected] });
  await answers(worker, '{ turnover(day: "2026-03-01") { bookings amount } }', {
    turnover: { bookings: 1, amount: '5.00' },
  });
});

test('12. A hot key is written once per batch, and keys are sharded over several owners', async () => {
  await caughtUp(worker, 'shared_count@1');
  const before = await workOf('shared_count');
  await worker.log.append(added('hot', ...Array.from({ length: 200 }, () => 1)));
  await answers(worker, '{ sharedCount(cartId: "hot") { items } }', { sharedCount: { items: 200 } });
  expect((await workOf('shared_count')).rows - before.rows).toBe(1n);
  const partitionsOf = async (id: string) =>
    (await statusOf(worker, id)).partitions.map(({ partition, processor }) => ({ partition, processor }));
  const running = (count: number) =>
    Array.from({ length: count }, (_, partition) => ({ partition, processor: 'running' }));
  expect(await partitionsOf('shared_count@1')).toEqual(running(4));

  // Set-based, too: the row of a day belongs to one of the partitions.
  await caughtUp(worker, 'shared_turnover@1');
  const sharedBefore = await workOf('shared_turnover');
  await worker.log.append(booked('s12', ...Array.from({ length: 200 }, () => ['2026-07-01', '0.50'] as const)));
  await answers(worker, '{ sharedTurnover(day: "2026-07-01") { amount } }', { sharedTurnover: { amount: '100.00' } });
  await caughtUp(worker, 'shared_turnover@1');
  const shared = await workOf('shared_turnover');
  expect({ events: shared.events - sharedBefore.events, rows: shared.rows - sharedBefore.rows }).toEqual({
    events: 200n,
    rows: 1n,
  });
  expect(await partitionsOf('shared_turnover@1')).toEqual(running(3));
});

test('13. A lease has an owner and an expiry, and is renewed', async () => {
  const leased = itemCount('leased_count');
  await application.start({
    projections: [leased],
    // With the default factor, the first renewal would come after this test has timed out.
    runtime: { ownership: 'lease', leaseSeconds: 900, leaseRenewalFactor: 0.01 },
  });
  const lease = async () =>
    (
      await application.sql<{ expires: string }>(
        `select expires_at::text as expires from refold.leases where name = 'leased_count'`,
      )
    )[0];
  const first = await until(lease);
  await until(async () => (await lease())?.expires !== first.expires);
});

test('14. A view shows how far each projection is behind', async () => {
  await caughtUp(worker, 'turnover@1');
  const [lag] = await application.sql(`select events, exact from refold.lag where name = 'turnover'`);
  expect(lag).toEqual({ events: 0n, exact: true });
});

/** In another way: an entry is the sum of a processor's batches over ten seconds, not one batch. */
test('15. The run log has positions, events, rows and times', async () => {
  await worker.log.append(added('logged', 1));
  await caughtUp(worker, 'plain_count@1');
  const runs = await application.sql(
    `select distinct to_position > from_position as moved, ended_at >= started_at as timed, rows > 0 as wrote
     from refold.runs
     where name = 'plain_count' and events > 0`,
  );
  expect(runs).toEqual([{ moved: true, timed: true, wrote: true }]);
});

test('16. Reconciliation: rows are folded again from the log and compared', async () => {
  await caughtUp(worker, 'old_count@1');
  const check = () =>
    verifyVersion({ db: application.db, log: worker.log, readSchema, projection: itemCount('old_count') });
  expect((await check()).differences).toBe(0);
  await application.sql(`update read_models.old_count set items = items + 1 where cart_id = 'bounded'`);
  expect(await check()).toMatchObject({ differences: 1, samples: [{ key: expect.stringContaining('bounded') }] });
});

test('17. Old event shapes are normalized on replay', async () => {
  const inEuros = defineEvents('fee', { Charged: z.object({ euros: z.number() }) });
  const inCents = defineEvents(
    'fee',
    { Charged: z.object({ cents: z.number() }) },
    { upcasters: { Charged: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] } },
  );
  const fees = (events: typeof inCents) =>
    defineProjection({
      name: 'fee_total',
      version: 1,
      events,
      table: { feeId: t.text().primaryKey(), cents: t.integer() },
      key: (event) => event.streamId,
      evolve: { Charged: (row, { payload }) => ({ cents: (row?.cents ?? 0) + payload.cents }) },
    });
  const older = await application.start({ events: [inEuros] }, { role: 'gateway' });
  await older.log.append({ family: inEuros, streamId: 'f', events: [{ type: 'Charged', payload: { euros: 3 } }] });
  await older.stop();
  const newer = await application.start({ projections: [fees(inCents)] });
  await newer.log.append({ family: inCents, streamId: 'f', events: [{ type: 'Charged', payload: { cents: 50 } }] });
  await answers(newer, '{ feeTotal(feeId: "f") { cents } }', { feeTotal: { cents: 350 } });
  await newer.rebuilds.request('fee_total@1', step);
  await caughtUp(newer, 'fee_total@1');
  await answers(newer, '{ feeTotal(feeId: "f") { cents } }', { feeTotal: { cents: 350 } });
});

test('18. A complex batch is staged in SQL before it is merged', async () => {
  await worker.log.append(booked('s18', ['2026-05-01', '8.00'], ['2026-05-01', '2.00']));
  const corrected = { type: 'Corrected', payload: { day: '2026-05-01', was: '2.00', is: '1.00' } } as const;
  await worker.log.append({ family: sale, streamId: 's18', events: [corrected] });
  await answers(worker, '{ turnover(day: "2026-05-01") { bookings amount } }', {
    turnover: { bookings: 2, amount: '9.00' },
  });
});
