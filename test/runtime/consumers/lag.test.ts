import { pino } from 'pino';
import { expect, test } from 'vitest';
import { defineConfig, type Projection } from '../../../src/index.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { readLag, readLagWithin } from '../../../src/store/processors/lag.ts';
import { readThroughput } from '../../../src/store/processors/runs.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account, balanceV1, openingsV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const { database, db } = await databaseOfFile();
// Enough events that a plan with a scan is visible, and well above the limit of a single lag query.
const logSize = 60_000;

async function withRuntime(projections: readonly Projection[], work: (runtime: Runtime) => Promise<void>) {
  const runtime = await startRuntime({
    config: defineConfig({ projections, events: [account] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  try {
    await work(runtime);
  } finally {
    await runtime.stop();
  }
}

/** Appends many events at once without Refold. Every tenth opens an account, an hour ago. */
async function fill(events: number): Promise<void> {
  await db.query({
    text: `
      insert into refold.events (stream_position, recorded_at, family, stream_id, type, payload)
      select
        1 + n % 10,
        now() - interval '1 hour',
        'account',
        'bulk-' || n / 10 || '-' || (select count(*) from refold.streams),
        case n % 10 when 0 then 'Opened' else 'Credited' end,
        case n % 10 when 0 then '{"owner":"Ada"}' else '{"amount":"1"}' end::jsonb
      from generate_series(0, ${events - 1}) n`,
  });
}

async function moveTo(back: number): Promise<void> {
  await db.query({
    text: `update refold.processors set checkpoint = (select max(position) from refold.events) - ${back}`,
  });
}

test('lag counts the events that a version handles, and how long the first of them has waited', async () => {
  await withRuntime([balanceV1, openingsV1], async () => {});
  await fill(logSize);
  await moveTo(95);
  expect(await readLag(db)).toMatchObject([
    { name: 'balance', version: 1, partition: 0, positions: 95n, events: 95n, exact: true },
    { name: 'openings', version: 1, partition: 0, positions: 95n, events: 9n, exact: true },
  ]);
  for (const { seconds } of await readLag(db)) expect(Math.abs(seconds - 3600)).toBeLessThan(1800);

  await moveTo(0);
  for (const lag of await readLag(db))
    expect(lag).toMatchObject({ positions: 0n, events: 0n, exact: true, seconds: 0 });
});

test('a version far behind reports that its lag is not fully counted', async () => {
  await moveTo(logSize);
  const lags = await readLag(db);
  expect(lags).toMatchObject([
    { name: 'balance', positions: BigInt(logSize), events: 10_000n, exact: false },
    { name: 'openings', positions: BigInt(logSize), events: 1_000n, exact: false },
  ]);
});

test('readers that come again and again visit a share of the log for each processor, also if the log is in another database', async () => {
  await moveTo(logSize);
  const apart = createDatabase({
    url: database.url,
    elsewhere: { log: db, storesOf: () => [], others: () => [] },
  });
  for (const reader of [db, apart])
    expect(await readLagWithin(reader, 400)).toMatchObject([
      { name: 'balance', positions: BigInt(logSize), events: 200n, exact: false },
      { name: 'openings', positions: BigInt(logSize), events: 20n, exact: false },
    ]);
  await apart.close();
});

test('reading the lag, the throughput and the status never scans the log, for any length and any known positions', async () => {
  await moveTo(logSize);
  for (const statistics of [
    "delete from pg_statistic where starelid = 'refold.events'::regclass",
    'analyze refold.events',
  ]) {
    await database.administer(statistics);
    // A separate connection: statistics of a session count reads of its earlier transactions for a while.
    const fresh = createDatabase({ url: database.url });
    await fresh.transaction(async (tx) => {
      await tx.query({ text: 'select * from refold.lag' });
      await tx.query({ text: 'select * from refold.throughput' });
      const [read] = await tx.query<{ scans: bigint; scanned: bigint; fetched: bigint }>({
        text: `select seq_scan as scans, seq_tup_read as scanned, idx_tup_fetch as fetched
          from pg_stat_xact_user_tables where relid = 'refold.events'::regclass`,
      });
      expect(read).toMatchObject({ scans: 0n, scanned: 0n });
      expect(read?.fetched).toBeLessThan(20_100n); // the limit of each of the two processors; the planner reads the ends of the index, too
    });
    await fresh.close();
  }
  const plan = await db.query<{ 'QUERY PLAN': string }>({
    text: 'explain (costs off) select * from refold.lag, refold.throughput',
  });
  // The other parts of the views do not read the log.
  expect(plan.map((line) => line['QUERY PLAN']).join('\n')).not.toMatch(/\bevents\b/);
});

test('the run log adds up to what was folded, with one row for each ten seconds', async () => {
  await db.query({ text: 'delete from refold.runs' });
  await moveTo(0);
  await withRuntime([balanceV1, openingsV1], async (runtime) => {
    const before = (await runtime.status())[0]?.position;
    for (let id = 0; id < 30; id++) {
      await runtime.log.append({
        family: account,
        streamId: `run-${id}`,
        events: [
          { type: 'Opened', payload: { owner: `owner-${id}` } },
          { type: 'Credited', payload: { amount: '1' } },
        ],
      });
    }
    const horizon = await runtime.log.horizon();
    await until(async () => (await runtime.status()).every(({ position }) => position >= horizon));
    const runs = await db.query<Record<string, unknown>>({
      text: `
        select
          name,
          min(from_position) as "from",
          max(to_position) as "to",
          sum(events)::bigint as events,
          count(*) <= count(distinct started_at) as "onePerInterval",
          bool_and(busy_ms >= 0 and ended_at >= started_at and batches > 0) as sound
        from refold.runs group by name order by name`,
    });
    expect(runs).toMatchObject([
      { name: 'balance', from: before, to: horizon, events: 60n, onePerInterval: true, sound: true },
      { name: 'openings', from: before, to: horizon, events: 30n, onePerInterval: true, sound: true },
    ]);
    const [balance, openings] = await readThroughput(db);
    expect(balance?.eventsPerSecond).toBeGreaterThan(0);
    expect(balance?.eventsPerSecond).toBeGreaterThan(openings?.eventsPerSecond ?? Number.POSITIVE_INFINITY);
  });
});
