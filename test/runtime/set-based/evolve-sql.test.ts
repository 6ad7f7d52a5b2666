import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, type Projection, t } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { totalsByEvolve, totalsBySql, totalsByStages } from '../../support/account-totals.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;

function start(projections: readonly Projection[], maintain = true, development = false): Promise<Runtime> {
  return setting.start(defineConfig({ projections, runtime: { pageSize: 100, polling: { min: 20, max: 100 } } }), {
    maintain,
    development,
  });
}

async function caughtUp(runtime: Runtime, { name, version }: Projection): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).some(
      (status) =>
        status.name === name && status.version === version && status.position >= horizon && status.state === 'active',
    ),
  );
  await runtime.versions.refresh();
}

/** The rows of one fold of the log, event by event, in the table of the other form. */
const expected = (runtime: Runtime) => foldedTable(runtime.log, totalsByEvolve);

test.each([
  ['one statement', totalsBySql],
  ['stages', totalsByStages],
] as const)('a table built and maintained with SQL equals the one that evolve builds from the same events: %s', async (_, bySql) => {
  const random = seeded(1);
  const idle = await start([bySql], false);
  await traffic(idle.log, 3_000, random);
  const runtime = await start([bySql, totalsByEvolve]);
  for (let round = 0; round < 5; round++) {
    await traffic(runtime.log, 200, random);
    await caughtUp(runtime, bySql);
    expect(await storedTable(runtime.db, bySql)).toEqual(await expected(runtime));
  }
  const verified = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: bySql };
  expect(await verifyVersion(verified)).toMatchObject({ differences: 0 });
  const [, status] = await runtime.db.query<{ events: bigint }>({
    text: 'select events_folded as events from refold.processors order by version',
  });
  const [counted] = await runtime.db.query<{ events: bigint }>({
    text: `select count(*) as events from refold.events where type <> 'Opened'`,
  });
  expect(status).toEqual(counted);
});

test('a rebuild under traffic takes over with a table equal to one fold of the log', async () => {
  const random = seeded(2);
  const runtime = await start([totalsBySql]);
  await traffic(runtime.log, 2_000, random);
  await caughtUp(runtime, totalsBySql);
  await runtime.db.query({ text: 'update read_models.account_totals_v2 set balance = balance + 1' });
  await requestRebuild(runtime.db, totalsBySql, 'read_models', { actor: 'ann', reason: 'it was wrong' });
  await until(async () => {
    await traffic(runtime.log, 20, random);
    return (await readRebuilds(runtime.db)).length === 0;
  });
  await traffic(runtime.log, 200, random);
  await caughtUp(runtime, totalsBySql);
  const stored = runtime.versions.stored(totalsBySql);
  expect(stored.tableName).toBe('account_totals_v2_g2');
  expect(await storedTable(runtime.db, stored)).toEqual(await expected(runtime));
});

test('a version that is declared over a long log is built, made ready and activated', async () => {
  const before = await start([totalsByEvolve], false);
  await traffic(before.log, 2_000, seeded(3));
  const runtime = await start([totalsByEvolve, totalsBySql]);
  await caughtUp(runtime, totalsBySql);
  expect(await storedTable(runtime.db, totalsBySql)).toEqual(await expected(runtime));
  const steps = await runtime.db.query({
    text: 'select to_state as state from refold.transitions where version = 2 order by id',
  });
  expect(steps).toEqual([{ state: 'building' }, { state: 'ready' }, { state: 'active' }]);
});

test('subscribers are notified of the rows that a batch wrote and removed', async () => {
  const runtime = await start([totalsBySql]);
  const rows = runtime.live.row(totalsBySql, ['a'], ['balance'], { after: null });
  const balance = async () => (await rows.next()).value?.row?.balance?.toString() ?? null;
  expect(await balance()).toBe(null);
  await runtime.log.append({
    family: account,
    streamId: 'a',
    events: [credited('0.10'), credited('0.20')],
  });
  // The events of one append may come in two batches.
  const written = await balance();
  if (written !== '0.3') {
    expect(written).toBe('0.1');
    expect(await balance()).toBe('0.3');
  }
  await runtime.log.append({ family: account, streamId: 'a', events: [{ type: 'Closed', payload: {} }] });
  expect(await balance()).toBe(null);
  await rows.return?.();
});

test('verification finds rows that were changed, removed and added by hand', async () => {
  const runtime = await start([totalsBySql]);
  await runtime.log.append({ family: account, streamId: 'a', events: [credited('1'), credited('2')] });
  await runtime.log.append({ family: account, streamId: 'b', events: [credited('3')] });
  await caughtUp(runtime, totalsBySql);
  const verify = () =>
    verifyVersion({ db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: totalsBySql });
  expect(await verify()).toMatchObject({ rowsCompared: 2, differences: 0, samples: [] });
  await runtime.db.query({
    text: `update read_models.account_totals_v2 set balance = 4, largest = null where account_id = 'a'`,
  });
  await runtime.db.query({ text: `update read_models.account_totals_v2 set account_id = 'c' where account_id = 'b'` });
  expect(await verify()).toMatchObject({
    position: 3n,
    rowsCompared: 2,
    differences: 3,
    samples: [
      { key: '["a"]', kind: 'different', columns: ['balance', 'largest'] },
      { key: '["b"]', kind: 'missing', columns: [] },
      { key: '["c"]', kind: 'surplus', columns: [] },
    ],
  });
});

test('an event that the SQL fails on stops only its projection, and everything before it is in the table', async () => {
  const runtime = await start([totalsBySql, totalsByEvolve]);
  await runtime.log.append({ family: account, streamId: 'a', events: [credited('1'), credited('2')] });
  await runtime.log.append({ family: account, streamId: 'a', events: [credited('0.001'), credited('4')] });
  const status = await until(async () =>
    (await runtime.status()).find(({ version, processor }) => version === 2 && processor === 'stopped'),
  );
  expect(status.position).toBe(2n);
  expect(status.error).toMatchObject({
    code: 'EVOLVE_FAILED',
    position: '3',
    message: `account_totals@2: evolveSql failed at position 3 ('Credited' of stream 'a'): evolveSql returns a value for 'balance' that does not fit: expected a decimal with at most 2 digits after the point (round it, or widen the column), found 3.001.`,
  });
  expect((await storedTable(runtime.db, totalsBySql)).get('["a"]')).toMatchObject({ balance: '3', movements: 2 });
});

test('with skip, an event that the SQL fails on is left out, the hook is called, and a verification leaves it out as well', async () => {
  const skipped: unknown[] = [];
  const lenient = defineProjection({
    ...largestOf(),
    onError: { policy: 'skip', onSkip: ({ event, error }) => skipped.push([event.position, error.code]) },
    // Nothing that a temporary table has, too.
    setUp: async ({ query, table }) => void (await query(`create index on ${table} ((1 / (largest - 49)))`)),
  });
  const idle = await start([lenient], false);
  for (let n = 1; n <= 50; n++) {
    await idle.log.append({
      family: account,
      streamId: `a${n % 3}`,
      events: [credited(n % 10 === 0 ? 'much' : `${n}`)],
    });
  }
  await stop(idle);
  const runtime = await start([lenient]);
  await caughtUp(runtime, lenient);
  expect(skipped).toEqual([10n, 20n, 30n, 40n, 49n, 50n].map((position) => [position, 'EVOLVE_FAILED']));
  expect(await storedTable(runtime.db, lenient)).toEqual(
    new Map([
      ['["a0"]', { accountId: 'a0', largest: '48' }],
      ['["a1"]', { accountId: 'a1', largest: '46' }],
      ['["a2"]', { accountId: 'a2', largest: '47' }],
    ]),
  );
  await requestRebuild(runtime.db, lenient, 'read_models', { actor: 'ann', reason: 'to see it again' });
  await until(() => runtime.versions.stored(lenient).tableName.endsWith('_g2'));
  const verified = await verifyVersion({
    db: runtime.db,
    log: runtime.log,
    readSchema: 'read_models',
    projection: lenient,
  });
  expect(verified).toMatchObject({ rowsCompared: 3, differences: 0 });
  expect(skipped).toHaveLength(12);
});

test('stored payloads of older code are upcast before the SQL reads them, beside those of types that never changed', async () => {
  const returned = z.object({ cents: z.int() });
  const before = defineEvents('shop', { Sold: z.object({ euros: z.int() }), Returned: returned });
  const shop = defineEvents(
    'shop',
    { Sold: z.object({ cents: z.int() }), Returned: returned },
    { upcasters: { Sold: [({ euros }: { euros: number }) => ({ cents: euros * 100 })] } },
  );
  const sales = defineProjection({
    name: 'sales',
    version: 1,
    events: shop,
    table: { shopId: t.text().primaryKey(), cents: t.bigint(), returns: t.integer(), days: t.list(t.text()) },
    evolveSql: {
      events: ['Sold', 'Returned'],
      rows: `
        select
          stream_id as shop_id,
          sum(case type when 'Sold' then 1 else -1 end * (payload->>'cents')::bigint) as cents,
          count(*) filter (where type = 'Returned') as returns,
          jsonb_agg(distinct (recorded_at::date)::text) as days
        from batch
        group by stream_id`,
      merge: { cents: 'add', returns: 'add', days: 'replace' },
    },
  });
  const idle = await start([sales], false);
  const oldLog = createEventLog(idle.db, [before]);
  await oldLog.append({
    family: before,
    streamId: 's',
    events: [
      { type: 'Sold', payload: { euros: 5 } },
      { type: 'Returned', payload: { cents: 120 } },
    ],
  });
  const runtime = await start([sales]);
  await runtime.log.append({ family: shop, streamId: 's', events: [{ type: 'Sold', payload: { cents: 7 } }] });
  await caughtUp(runtime, sales);
  const table = await storedTable(runtime.db, sales);
  expect(table.get('["s"]')).toMatchObject({ cents: '387', returns: 1, days: [expect.stringMatching(/^\d{4}-/)] });
  const verified = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: sales };
  expect(await verifyVersion(verified)).toMatchObject({ rowsCompared: 1, differences: 0 });
});

test.each([
  [
    'a column that there is not',
    { rows: 'select stream_id as account_id, sum(payload->>1) as largest from batch group by 1' },
    /^largest@1: PostgreSQL refuses evolveSql: function sum\(text\) does not exist\. 'rows' returns account_id, largest; /,
  ],
  [
    'a column that is missing',
    { rows: 'select stream_id as account_id, 1 as largets from batch group by 1' },
    /^largest@1: PostgreSQL refuses evolveSql: column new\.largest does not exist/,
  ],
  [
    'a value of another type',
    { rows: 'select stream_id as account_id, true as largest from batch group by 1' },
    /^largest@1: PostgreSQL refuses evolveSql: /,
  ],
  [
    'a syntax error',
    { rows: 'select stream_id as account_id, 1 as largest from batch group by 1;' },
    /^largest@1: PostgreSQL refuses evolveSql: syntax error/,
  ],
  [
    'a stage that reads a column that there is not',
    {
      stages: {
        part: `select stream_id, (payload->>'amount')::numeric as amount from batch`,
        largest: 'select stream_id as account_id, max(amout) as largest from part group by stream_id',
      },
      rows: 'select * from largest',
    },
    /^largest@1: PostgreSQL refuses evolveSql\.stages\.largest: column "amout" does not exist\. It may read 'batch' and the stages before it\./,
  ],
  [
    'a stage that reads something else than the batch',
    {
      stages: { part: 'select stream_id, name, position from batch cross join refold.projections' },
      rows: 'select name as account_id, max(position) as largest from part group by 1',
    },
    "largest@1: evolveSql reads refold.projections; it may read only 'batch', because anything else may differ when the log is folded again.",
  ],
  [
    'a condition over a column that there is not',
    { remove: 'new.gone' },
    /^largest@1: PostgreSQL refuses evolveSql: column new\.gone does not exist/,
  ],
  [
    'a row for a batch without events',
    { rows: `select 'all' as account_id, max((payload->>'amount')::numeric) as largest from batch` },
    "largest@1: evolveSql.rows returns 1 rows for a batch without events; it must return none. Group by the key, or add 'having count(*) > 0'.",
  ],
  [
    'a read of something else than the batch',
    { rows: 'select name as account_id, max(position) as largest from batch cross join refold.projections group by 1' },
    "largest@1: evolveSql reads refold.projections; it may read only 'batch', because anything else may differ when the log is folded again.",
  ],
] as const)('a start with SQL that has %s is refused, and leaves nothing behind', async (_, change, message) => {
  const { evolveSql, ...rest } = largestOf();
  const wrong = defineProjection({ ...rest, evolveSql: { ...evolveSql, ...change } });
  await expect(start([wrong])).rejects.toMatchObject({
    code: 'INVALID_DECLARATION',
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
  const idle = await start([], false);
  expect(await idle.db.query({ text: 'select from refold.projections' })).toEqual([]);
});

test('a unique value that is taken leaves out only its own event, in builds and live, and is counted', async () => {
  const owners = defineProjection({
    name: 'owners',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text().unique() },
    evolveSql: {
      events: ['Opened'],
      rows: `select stream_id as account_id, max(payload->>'owner') as owner from batch group by stream_id`,
      merge: { owner: 'replace' },
    },
    onError: 'skip',
  });
  const open = ({ log }: Runtime, streamId: string, owner: string) =>
    log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner } }] });
  const idle = await start([owners], false);
  for (const [id, owner] of Object.entries({ a: 'Ada', b: 'Bob', c: 'Ada', d: 'Dee' })) await open(idle, id, owner);
  await stop(idle);
  const runtime = await start([owners]);
  await caughtUp(runtime, owners);
  await open(runtime, 'e', 'Bob');
  await open(runtime, 'f', 'Flo');
  await caughtUp(runtime, owners);
  expect(await storedTable(runtime.db, owners)).toEqual(
    new Map(
      Object.entries({ a: 'Ada', b: 'Bob', d: 'Dee', f: 'Flo' }).map(([accountId, owner]) => [
        `["${accountId}"]`,
        { accountId, owner },
      ]),
    ),
  );
  expect((await runtime.status())[0]?.eventsSkipped).toBe(2n);
  const verified = await verifyVersion({
    db: runtime.db,
    log: runtime.log,
    readSchema: 'read_models',
    projection: owners,
  });
  expect(verified.differences).toBe(0);
});

test('changed SQL under the same version causes a warning, and is rebuilt in development', async () => {
  const first = await start([defineProjection(largestOf())]);
  await first.log.append({ family: account, streamId: 'a', events: [credited('2'), credited('1')] });
  await caughtUp(first, defineProjection(largestOf()));
  await stop(first);
  const { evolveSql, ...rest } = largestOf();
  const edited = defineProjection({
    ...rest,
    evolveSql: { ...evolveSql, rows: evolveSql.rows.replace('max', 'min'), merge: { largest: 'min' } },
  });
  const runtime = await start([edited], true, true);
  await caughtUp(runtime, edited);
  expect((await storedTable(runtime.db, edited)).get('["a"]')).toEqual({ accountId: 'a', largest: '1' });
});

function largestOf() {
  return {
    name: 'largest',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), largest: t.decimal(10, 2) },
    evolveSql: {
      events: ['Credited'],
      rows: `
        select stream_id as account_id, max((payload->>'amount')::numeric) as largest
        from batch
        group by stream_id -- the end`,
      merge: { largest: 'max' },
    },
  } as const;
}

function credited(amount: string) {
  return { type: 'Credited', payload: { amount } } as const;
}
