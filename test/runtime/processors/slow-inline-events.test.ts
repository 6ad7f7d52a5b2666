/** An inline version is folded within the appends: what takes long there delays them, and nothing else. */
import { afterEach, expect, test } from 'vitest';
import { defineConfig, defineProjection, t } from '../../../src/index.ts';
import { retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { reaches, settingOfEachTest } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
let isBroken = false;
afterEach(() => {
  isBroken = false;
});

/** Keeps the thread busy, as a calculation does. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** Each event takes as many milliseconds as its amount says. */
const slowV1 = defineProjection({
  name: 'slow',
  version: 1,
  events: account,
  mode: 'inline',
  onError: 'dead-letter',
  table: { accountId: t.text().primaryKey(), count: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Credited(row, event) {
      if (isBroken) throw new Error('not now');
      block(Number(event.payload.amount));
      return { count: (row?.count ?? 0) + 1 };
    },
  },
});

const credited = (streamId: string, ...amounts: readonly number[]) => ({
  family: account,
  streamId,
  events: amounts.map((amount) => ({ type: 'Credited', payload: { amount: String(amount) } }) as const),
});

async function start() {
  const runtime = await setting.start(defineConfig({ projections: [slowV1] }));
  await reaches(runtime, slowV1, 'active');
  await until(async () => (await runtime.status()).every(({ inline }) => inline === 'live'));
  return runtime;
}

// The server ends the transaction of an append five seconds after its last statement.
const many = Array.from({ length: 30 }, () => 200);

test('many events of one append are folded, however long all of them take, and the event loop has turns', async () => {
  const runtime = await start();
  let turns = 0;
  const counting = setInterval(() => turns++, 10);
  await runtime.log.append(credited('ada', ...many));
  clearInterval(counting);
  expect(turns).toBeGreaterThan(many.length / 2);
  expect((await runtime.db.query<{ count: number }>({ text: 'select count from read_models.slow_v1' }))[0]?.count).toBe(
    many.length,
  );
});

test('an event that takes longer refuses its own append and is named; others that were sent with it are written', async () => {
  const runtime = await start();
  const outcomes = await Promise.allSettled([
    runtime.log.append(credited('before', 1)),
    runtime.log.append(credited('longest', 1, 5_200)),
    ...['a', 'b', 'c'].map((id) => runtime.log.append(credited(id, 1))),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect(outcomes[1]).toMatchObject({
    reason: {
      code: 'EVOLVE_FAILED',
      message: expect.stringMatching(/slow@1: its code took \d{4,} ms for 'Credited'.*Nothing was appended/),
    },
  });
  expect(await runtime.db.query({ text: `select count(*)::int as events from refold.events` })).toEqual([
    { events: 4 },
  ]);
});

test('the dead letters of one row are folded again, however long all of them take', async () => {
  const runtime = await start();
  isBroken = true;
  const long = Array.from({ length: 8 }, () => 500);
  await runtime.log.append(credited('ada', ...long));
  isBroken = false;
  // The server gives the transaction up after two seconds instead of thirty, which keeps this test below a minute.
  const db: Database = {
    ...runtime.db,
    transaction: (work, options) => runtime.db.transaction(work, { ...options, idleTimeoutMs: 2_000 }),
  };
  const options = { db, log: runtime.log, readSchema: 'read_models', projection: slowV1 };
  expect(await retryDeadLetters(options, { actor: 'ada', reason: 'mended' })).toMatchObject({
    folded: long.length,
    left: 0,
  });
});
