import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, type Projection, t } from '../../../src/index.ts';
import { listDeadLetters, retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { storedTable } from '../../support/folded-table.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const step = { actor: 'ann', reason: 'test' };
const shop = defineEvents('shop', {
  Sold: z.object({ amount: z.string().nullable() }),
  Returned: z.object({ amount: z.string() }),
});

let database: TestDatabase;
const running = new Set<Runtime>();
const warnings: string[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  warnings.length = 0;
});
afterEach(async () => {
  for (const runtime of running) await runtime.stop();
  running.clear();
  await database.drop();
});

function takings(amount = `(payload->>'amount')::numeric`, more: object = {}) {
  return defineProjection({
    name: 'takings',
    version: 1,
    events: shop,
    table: { shopId: t.text().primaryKey(), amount: t.decimal(10, 2) },
    key: (event) => event.streamId,
    onError: 'dead-letter',
    evolveSql: {
      events: ['Sold', 'Returned'],
      rows: `
        select stream_id as shop_id, sum(case type when 'Sold' then 1 else -1 end * ${amount}) as amount
        from batch
        group by stream_id`,
      merge: { amount: 'add' },
    },
    ...more,
  });
}

/** PostgreSQL computes all columns of a stage before it knows a key. */
const withoutKeys = {
  events: ['Sold'],
  stages: { sale: `select stream_id, (payload->>'amount')::numeric as amount from batch` },
  rows: 'select stream_id as shop_id, sum(amount) as amount from sale group by stream_id',
  merge: { amount: 'add' },
};

async function start(projection: Projection): Promise<Runtime> {
  const runtime = await startRuntime({
    config: defineConfig({ projections: [projection], runtime: { pageSize: 50, polling: { min: 20, max: 100 } } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) }),
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

async function caughtUp(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).every(
      ({ position, state, rebuild }) => position >= horizon && state === 'active' && rebuild === null,
    ),
  );
  await runtime.versions.refresh();
}

const sell = ({ log }: Runtime, streamId: string, ...amounts: (string | null)[]) =>
  log.append({
    family: shop,
    streamId,
    events: amounts.map((amount) => ({ type: 'Sold', payload: { amount } }) as const),
  });

async function found(runtime: Runtime, projection: Projection) {
  const options = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection };
  const rows = await storedTable(runtime.db, runtime.versions.stored(projection));
  const letters = await listDeadLetters(options);
  return {
    amounts: Object.fromEntries(
      [...rows].map(([, row]) => [(row as { shopId: string }).shopId, (row as { amount: string }).amount]),
    ),
    letters: letters.map(({ key, position, error }) => [key?.[0], Number(position), error !== null]),
    differences: (await verifyVersion(options)).differences,
  };
}

test('a row waits behind its dead letter live, in a rebuild and in a replay from a snapshot, until the fixed code folds it', async () => {
  const failing = takings();
  const runtime = await start(failing);
  await sell(runtime, 'a', '1', 'much', '2');
  await sell(runtime, 'b', '4');
  await caughtUp(runtime);
  // More digits than the column has: refused by the table, not by the SQL.
  await sell(runtime, 'b', '8.001', '8');
  await sell(runtime, 'd', '32');
  await caughtUp(runtime);
  const expected = {
    amounts: { a: '1', b: '4', d: '32' },
    letters: [
      ['a', 2, true],
      ['a', 3, false],
      ['b', 5, true],
      ['b', 6, false],
    ],
    differences: 0,
  };
  expect(await found(runtime, failing)).toEqual(expected);
  expect(warnings.join('\n')).toContain('takings@1: ');

  await requestRebuild(runtime.db, failing, 'read_models', step);
  await caughtUp(runtime);
  expect(await found(runtime, failing)).toEqual(expected);

  const version = { name: 'takings', version: 1 };
  await takeSnapshot({ db: runtime.db, readSchema: 'read_models', ...version }, step);
  await sell(runtime, 'a', '64');
  await sell(runtime, 'd', '64');
  await caughtUp(runtime);
  const later = { ...expected, amounts: { ...expected.amounts, d: '96' } };
  later.letters = [...expected.letters.slice(0, 2), ['a', 8, false], ...expected.letters.slice(2)].toSorted(
    (one, other) => Number(one[1]) - Number(other[1]),
  );
  expect(await found(runtime, failing)).toEqual(later);
  const options = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: failing };
  await rebuildInPlace(options, step, 'latest');
  await caughtUp(runtime);
  expect(await found(runtime, failing)).toEqual(later);
  await stop(runtime);

  const fixed = takings(`round(coalesce(nullif(payload->>'amount', 'much'), '0')::numeric, 2)`);
  const again = await start(fixed);
  await caughtUp(again);
  const retried = { db: again.db, log: again.log, readSchema: 'read_models', projection: fixed };
  expect(await retryDeadLetters(retried, step)).toEqual({ folded: 5, discarded: 0, left: 0 });
  await sell(again, 'a', '100');
  await caughtUp(again);
  expect(await found(again, fixed)).toEqual({
    amounts: { a: '167', b: '20', d: '96' },
    letters: [],
    differences: 0,
  });
});

test('a null in a column that may not be null follows the policy, after the retries', async () => {
  const failing = takings(undefined, { onError: { policy: 'dead-letter', retries: [{ times: 2, first: 1 }] } });
  const runtime = await start(failing);
  await sell(runtime, 'a', null);
  await caughtUp(runtime);
  await sell(runtime, 'a', '1');
  await sell(runtime, 'b', '1');
  await caughtUp(runtime);
  expect(await found(runtime, failing)).toEqual({
    amounts: { b: '1' },
    letters: [
      ['a', 1, true],
      ['a', 2, false],
    ],
    differences: 0,
  });
  expect((await runtime.status())[0]?.retries).toBe(2n);
});

test('an event whose key is unknown is kept without one, and only a rebuild or a discard ends it', async () => {
  const keyless = takings(undefined, {
    key: () => {
      throw new Error('no key');
    },
    evolveSql: withoutKeys,
  });
  const runtime = await start(keyless);
  await sell(runtime, 'a', '1', 'much', '2');
  await caughtUp(runtime);
  expect(await found(runtime, keyless)).toEqual({
    amounts: { a: '3' },
    letters: [[undefined, 2, true]],
    differences: 0,
  });
  const options = { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection: keyless };
  expect(await retryDeadLetters(options, step)).toEqual({ folded: 0, discarded: 0, left: 1 });
  const [letter] = await listDeadLetters(options);
  expect(letter?.error?.message).toBe(
    "takings@1: the key of 'Sold' at position 2 could not be determined, and later events of its rows were folded. Rebuild the version, or discard the event.",
  );
});

test('every skipped event is logged, counted, reported in the status and recorded with its row', async () => {
  const tolerant = takings(undefined, { onError: 'skip' });
  const runtime = await start(tolerant);
  await sell(runtime, 'a', '1', 'much', '2');
  await sell(runtime, 'b', '4.001');
  await caughtUp(runtime);
  expect(await found(runtime, tolerant)).toEqual({ amounts: { a: '3' }, letters: [], differences: 0 });
  expect((await runtime.status())[0]?.eventsSkipped).toBe(2n);
  expect(await runtime.db.query({ text: 'select position, key, refused from refold.skips order by position' })).toEqual(
    [
      { position: 2n, key: ['a'], refused: true },
      { position: 4n, key: ['b'], refused: true },
    ],
  );
  expect(warnings.filter((warning) => warning.includes('1 events skipped'))).toEqual([
    expect.stringContaining(
      "takings@1: 1 events skipped. takings@1: evolveSql failed at position 2 ('Sold' of stream 'a')",
    ),
    expect.stringContaining(
      "takings@1: 1 events skipped. takings@1: evolveSql failed at position 4 ('Sold' of stream 'b')",
    ),
  ]);
});

test('a row waits behind its dead letter if its rows are computed in stages', async () => {
  const failing = takings(undefined, { evolveSql: withoutKeys });
  const runtime = await start(failing);
  await sell(runtime, 'a', '1', 'much', '2');
  await sell(runtime, 'b', '4');
  await caughtUp(runtime);
  expect(await found(runtime, failing)).toEqual({
    amounts: { a: '1', b: '4' },
    letters: [
      ['a', 2, true],
      ['a', 3, false],
    ],
    differences: 0,
  });
});

test('in partitions, an event of which no row is known is left out once, whichever of them meet it', async () => {
  const tolerant = takings(undefined, { onError: 'skip', key: undefined, partitions: 3, evolveSql: withoutKeys });
  const runtime = await start(tolerant);
  await sell(runtime, 'a', '1', 'much', '2');
  await sell(runtime, 'b', '4', 'much');
  await caughtUp(runtime);
  expect(await found(runtime, tolerant)).toEqual({ amounts: { a: '3', b: '4' }, letters: [], differences: 0 });
  expect((await runtime.status())[0]?.eventsSkipped).toBe(2n);
  expect(await runtime.db.query({ text: 'select position, key from refold.skips order by position' })).toEqual([
    { position: 2n, key: null },
    { position: 5n, key: null },
  ]);
});
