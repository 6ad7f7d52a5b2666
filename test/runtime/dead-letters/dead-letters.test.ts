import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Column,
  defineConfig,
  defineProjection,
  type FoldFailure,
  globalPosition,
  type Projection,
  t,
} from '../../../src/index.ts';
import {
  type DeadLetterOptions,
  discardDeadLetters,
  listDeadLetters,
  retryDeadLetters,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { insertDeadLetters } from '../../../src/store/processors/dead-letters.ts';
import { lockPartitions } from '../../../src/store/processors/partitions.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { createRuntimeSetting, settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;
const step = { actor: 'ann', reason: 'fixed' };

const configOf = (projections: readonly Projection[], pageSize = 200) =>
  defineConfig({ projections, runtime: { pageSize } });
const start = (projections: readonly Projection[]) => setting.start(configOf(projections));

/** Credits by account and in total ('*'). The amount '13' fails for accounts, and '14' for the total. */
function credits(policy: 'skip' | 'dead-letter', fails: boolean, onSkip?: (failure: FoldFailure) => void): Projection {
  return defineProjection({
    name: 'credits',
    version: 1,
    events: account,
    table: { row: t.text().primaryKey(), credits: t.integer(), last: t.text() },
    key: (event) => [event.streamId, '*'],
    evolve: {
      Credited: (row, { payload: { amount } }, key) => {
        if (fails && amount === (key === '*' ? '14' : '13')) throw new Error(`${amount} is bad luck`);
        return { credits: (row?.credits ?? 0) + 1, last: amount };
      },
    },
    onError: onSkip && policy === 'skip' ? { policy, onSkip } : policy,
  });
}

interface Credit {
  readonly streamId: string;
  readonly amount: string;
}

async function append(runtime: Runtime, events: readonly Credit[]): Promise<void> {
  for (const { streamId, amount } of events) {
    await runtime.log.append({ family: account, streamId, events: [{ type: 'Credited', payload: { amount } }] });
  }
}

async function caughtUp(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await runtime.status()).every(({ position, state }) => position >= horizon && state === 'active'),
  );
}

/** What each row has folded, computed without the code under test. */
function expectedRows(events: readonly Credit[], taken: (row: string, events: readonly Credit[]) => readonly Credit[]) {
  const rows = new Map<string, unknown>();
  for (const row of new Set(['*', ...events.map(({ streamId }) => streamId)])) {
    const all = events.filter(({ streamId }) => row === '*' || streamId === row);
    const inRow = taken(row, all);
    const last = inRow.at(-1)?.amount;
    if (last !== undefined) rows.set(JSON.stringify([row]), { row, credits: inRow.length, last });
  }
  return rows;
}

const isPoison =
  (row: string) =>
  ({ amount }: Credit) =>
    amount === (row === '*' ? '14' : '13');
const upToPoison = (row: string, events: readonly Credit[]) => {
  const first = events.findIndex(isPoison(row));
  return first < 0 ? events : events.slice(0, first);
};
const withoutPoison = (row: string, events: readonly Credit[]) => events.filter((event) => !isPoison(row)(event));

const history = fc.array(
  fc.record({ streamId: fc.constantFrom('a', 'b', 'c'), amount: fc.constantFrom('1', '2', '13', '14') }),
  { minLength: 1, maxLength: 25 },
);

function optionsFor(runtime: Runtime, projection: Projection): DeadLetterOptions {
  return { db: runtime.db, log: runtime.log, readSchema: 'read_models', projection };
}

async function rowsOf(runtime: Runtime, projection: Projection) {
  await runtime.versions.refresh();
  return storedTable(runtime.db, runtime.versions.stored(projection));
}

test('a row is never built with a gap: from its first failing event on, its events are kept in order, and other rows continue', async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.integer({ min: 1, max: 10 }), fc.boolean(), async (events, pageSize, live) => {
      const own = await createRuntimeSetting();
      try {
        const failing = credits('dead-letter', true);
        let runtime = await own.start(configOf([failing], pageSize));
        if (!live) await own.stop(runtime);
        if (!live) runtime = await own.start(configOf([failing], pageSize));
        await append(runtime, events);
        await caughtUp(runtime);
        expect(await rowsOf(runtime, failing)).toEqual(expectedRows(events, upToPoison));
        const kept = (await listDeadLetters(optionsFor(runtime, failing))).map(({ key, position, error }) => [
          key?.[0],
          Number(position),
          error !== null,
        ]);
        const expected = [...new Set(['*', 'a', 'b', 'c'])].flatMap((row) => {
          const inRow = events.flatMap((event, index) =>
            row === '*' || event.streamId === row ? [{ event, position: index + 1 }] : [],
          );
          const first = inRow.findIndex(({ event }) => isPoison(row)(event));
          return first < 0 ? [] : inRow.slice(first).map(({ position }, index) => [row, position, index === 0]);
        });
        expect(kept.sort()).toEqual(expected.sort());

        // Rebuilt by the same code, the same events are kept again.
        await requestRebuild(runtime.db, failing, 'read_models', step);
        await until(async () => (await runtime.status()).every(({ rebuild }) => rebuild === null));
        expect(await rowsOf(runtime, failing)).toEqual(expectedRows(events, upToPoison));
        const again = (await listDeadLetters(optionsFor(runtime, failing))).map(({ key, position, error }) => [
          key?.[0],
          Number(position),
          error !== null,
        ]);
        expect(again.sort()).toEqual(expected.sort());

        // After the fix and a retry, every row is as if nothing had ever failed.
        await own.stop(runtime);
        const fixed = credits('dead-letter', false);
        runtime = await own.start(configOf([fixed], pageSize));
        if (kept.length > 0) {
          expect(await retryDeadLetters(optionsFor(runtime, fixed), step)).toEqual({
            folded: kept.length,
            discarded: 0,
            left: 0,
          });
        }
        await append(runtime, [{ streamId: 'a', amount: '1' }]);
        await caughtUp(runtime);
        expect(await rowsOf(runtime, fixed)).toEqual(await foldedTable(runtime.log, fixed));
        expect((await runtime.status())[0]?.deadLetters).toBe(0);
        await own.stop(runtime);
      } finally {
        await own.close();
      }
    }),
    { numRuns: effort(8, 4) },
  );
});

test('discarded events are left out, and the events blocked behind them are folded', async () => {
  const failing = credits('dead-letter', true);
  const runtime = await start([failing, balanceV1]);
  const events = ['1', '13', '2', '13', '1'].map((amount) => ({ streamId: 'a', amount }));
  await append(runtime, events);
  await caughtUp(runtime);
  const options = optionsFor(runtime, failing);
  expect(await discardDeadLetters(options, step, 'a')).toEqual({ folded: 1, discarded: 1, left: 2 });
  expect(await discardDeadLetters(options, step, '["a"]')).toEqual({ folded: 1, discarded: 1, left: 0 });
  await append(runtime, [{ streamId: 'a', amount: '2' }]);
  await caughtUp(runtime);
  expect(await rowsOf(runtime, failing)).toEqual(
    expectedRows([...events, { streamId: 'a', amount: '2' }], withoutPoison),
  );
  await expect(discardDeadLetters(options, step)).rejects.toThrow('credits@1 has no dead letters.');
});

test('a row is found by its key as it is listed, whatever JSON would take the text for', async () => {
  const texts = ['10023', '1e3', 'true', 'null', '"quoted"', '[1]', '[true]', '[1,2]', '{"a":1}', ' '];
  const failing = (name: string, key: Column, keyOf: (id: string) => never) =>
    defineProjection({
      ...{ name, version: 1, events: account, onError: 'dead-letter' },
      table: { id: key.primaryKey(), credits: t.integer() },
      key: (event) => keyOf(event.streamId),
      evolve: {
        Credited: () => {
          throw new Error('refused');
        },
      },
    });
  const byText = failing('by_text', t.text(), (id) => id as never);
  const byInteger = failing('by_integer', t.integer(), (id) => Number(id) as never);
  const byBigint = failing('by_bigint', t.bigint(), (id) => BigInt(Number(id)) as never);
  const byBoolean = failing('by_boolean', t.boolean(), (id) => (id === 'true') as never);
  const runtime = await start([byText, byInteger, byBigint, byBoolean]);
  await append(
    runtime,
    texts.map((streamId) => ({ streamId, amount: '1' })),
  );
  await caughtUp(runtime);
  const left = async (projection: Projection, key: string) =>
    (await discardDeadLetters(optionsFor(runtime, projection), step, key)).left;
  for (const key of texts) expect([key, await left(byText, key)]).toEqual([key, 0]);
  expect(await listDeadLetters(optionsFor(runtime, byText))).toEqual([]);
  await left(byInteger, '10023');
  await left(byBigint, '10023');
  await left(byBoolean, 'true');
  for (const projection of [byInteger, byBigint, byBoolean]) {
    const keys = (await listDeadLetters(optionsFor(runtime, projection))).map(({ key }) => String(key));
    expect(keys).not.toContain('10023');
    expect(keys).not.toContain('true');
  }
  await expect(left(byInteger, 'x')).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
});

test('dead letters can be discarded while a batch that adds some is being written', async () => {
  const failing = credits('dead-letter', true);
  const runtime = await start([failing]);
  await append(runtime, [{ streamId: 'a', amount: '13' }]);
  await caughtUp(runtime);
  let discarding: Promise<unknown> | undefined;
  await runtime.db.transaction(async (batch) => {
    await lockPartitions(batch, 'credits', 1);
    discarding = discardDeadLetters(optionsFor(runtime, failing), step);
    await until(
      async () =>
        (
          await runtime.db.query({
            text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          })
        ).length > 0,
    );
    await insertDeadLetters(batch, failing, [
      { key: '["b"]', position: globalPosition(1n), type: 'Credited', streamId: 'b', error: { message: 'bad luck' } },
    ]);
  });
  expect(await discarding).toMatchObject({ discarded: 2 });
});

test('a retry with code that still fails changes only the number of attempts', async () => {
  const failing = credits('dead-letter', true);
  const runtime = await start([failing]);
  await append(runtime, [
    { streamId: 'a', amount: '13' },
    { streamId: 'a', amount: '1' },
  ]);
  await caughtUp(runtime);
  const before = await rowsOf(runtime, failing);
  expect(await retryDeadLetters(optionsFor(runtime, failing), step)).toEqual({ folded: 0, discarded: 0, left: 2 });
  expect(await rowsOf(runtime, failing)).toEqual(before);
  expect(
    (await listDeadLetters(optionsFor(runtime, failing))).map(({ attempts, error }) => [attempts, error?.message]),
  ).toEqual([
    [2, "credits@1: evolve of 'Credited' failed at position 1 (stream 'a', event 1): 13 is bad luck"],
    [1, undefined],
  ]);
});

test('a subscriber receives the row that a retry has repaired', async () => {
  const failing = credits('dead-letter', true);
  const before = await start([failing]);
  await append(before, [
    { streamId: 'a', amount: '1' },
    { streamId: 'a', amount: '13' },
  ]);
  await caughtUp(before);
  await stop(before);
  const mended = credits('dead-letter', false);
  const runtime = await start([mended]);
  const rows = runtime.live.row(mended, ['a'], ['credits'], { after: null });
  expect((await rows.next()).value?.row).toEqual({ row: 'a', credits: 1 });
  const { revision, shape } = runtime.versions.current();
  await retryDeadLetters(optionsFor(runtime, mended), step);
  expect((await rows.next()).value?.row).toEqual({ row: 'a', credits: 2 });
  await rows.return?.();
  // Code that keeps rows reads them again, but no gateway builds its schema again.
  expect(runtime.versions.current().revision).not.toBe(revision);
  expect(runtime.versions.current().shape).toBe(shape);
});

test('skipped events are reported, and the rest of the batch is not lost', async () => {
  const skipped: string[] = [];
  const failing = credits('skip', true, ({ event, key }) => skipped.push(`${event.position} ${key?.[0]}`));
  const runtime = await start([failing]);
  const events = ['1', '13', '14', '2'].map((amount) => ({ streamId: 'a', amount }));
  await append(runtime, events);
  await caughtUp(runtime);
  expect(await rowsOf(runtime, failing)).toEqual(expectedRows(events, withoutPoison));
  expect(skipped).toEqual(['2 a', '3 *']);
});

test('a retry with code that the running processes do not have is refused, and done once they have it', async () => {
  const broken = defineProjection({
    name: 'names',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: {
      Opened: () => {
        throw new Error('not written yet');
      },
    },
    onError: 'dead-letter',
  });
  const { name, version } = broken;
  const fixed = defineProjection({
    name,
    version,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, { payload: { owner } }) => ({ owner }) },
    onError: 'dead-letter',
  });
  const deployed = await start([broken]);
  await deployed.log.append({
    family: account,
    streamId: 'ada',
    events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
  });
  const optionsOf = ({ db, log }: Runtime) => ({ db, log, readSchema: 'read_models', projection: fixed });
  await until(async () => (await listDeadLetters(optionsOf(deployed))).length === 1);
  for (const redeliver of [retryDeadLetters, discardDeadLetters])
    await expect(redeliver(optionsOf(deployed), step)).rejects.toThrow(
      "names@1 is folded by test with other code than the code here, which would fold now. Deploy this code first, or use the deployed code: run the command where it is deployed, or with '--remote URL'.",
    );
  expect(await listDeadLetters(optionsOf(deployed))).toHaveLength(1);
  await stop(deployed);
  const next = await start([fixed]);
  expect(await retryDeadLetters(optionsOf(next), step)).toEqual({ folded: 1, discarded: 0, left: 0 });
});
