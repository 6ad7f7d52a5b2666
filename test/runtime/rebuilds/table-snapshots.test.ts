import { expect, test } from 'vitest';
import { defineConfig, defineProjection, globalPosition, type Projection, t } from '../../../src/index.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  recallDiscarded,
  retryDeadLetters,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createRowHistory } from '../../../src/runtime/reads/row-history.ts';
import { acceptRebuild, requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace, restoreSnapshot } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { dropSnapshot, listSnapshots, takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { readAllRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import type { TableSnapshot } from '../../../src/store/tables/table-snapshots.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { listDiscards } from '../../support/discards.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { settingOfEachTest } from '../../support/runtime-setting.ts';
import { account, balanceV1, balanceV2 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

const setting = settingOfEachTest();
const { stop } = setting;
const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'before the deploy' };

function start(projections: readonly Projection[], maintain = true): Promise<Runtime> {
  return setting.start(defineConfig({ projections, runtime: { pageSize: 50 } }), { maintain });
}

const take = ({ db }: Runtime, { name, version }: Projection) => takeSnapshot({ db, readSchema, name, version }, step);

async function caughtUp(runtime: Runtime): Promise<void> {
  const horizon = await runtime.log.horizon();
  await until(async () =>
    (await readRegistry(runtime.db)).every(({ checkpoint, state }) => checkpoint >= horizon && state === 'active'),
  );
  await runtime.versions.refresh();
}

async function rebuilt(runtime: Runtime): Promise<void> {
  await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
  await caughtUp(runtime);
}

async function expectTrue(runtime: Runtime, projection: Projection): Promise<void> {
  const expected = await foldedTable(runtime.log, projection);
  expect(await storedTable(runtime.db, runtime.versions.stored(projection))).toEqual(expected);
}

async function credit(runtime: Runtime, ...amounts: readonly string[]): Promise<void> {
  for (const amount of amounts)
    await runtime.log.append({ family: account, streamId: 'a', events: [{ type: 'Credited', payload: { amount } }] });
}

/** The credits of each account. The amount '13' can't be folded, or these amounts. */
function credits(fails: boolean | readonly string[]): Projection {
  const failing = typeof fails === 'boolean' ? (fails ? ['13'] : []) : fails;
  return defineProjection({
    name: 'credits',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), amounts: t.list(t.text()) },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, { payload: { amount } }) => {
        if (failing.includes(amount)) throw new Error('thirteen is bad luck');
        return { amounts: [...(row?.amounts ?? []), amount] };
      },
    },
    onError: 'dead-letter',
    history: true,
  });
}

/** The rebuild has new dead letters, so it waits for an operator. */
async function acceptOnceHeld({ db }: Runtime): Promise<void> {
  const accept = () => acceptRebuild(db, 'credits', 1, step);
  await until(() =>
    accept().then(
      () => true,
      () => false,
    ),
  );
}

async function amounts(runtime: Runtime, projection: Projection): Promise<unknown> {
  await runtime.versions.refresh();
  const rows = await storedTable(runtime.db, runtime.versions.stored(projection));
  return (rows.get('["a"]') as { amounts: unknown } | undefined)?.amounts;
}

test('a snapshot holds the rows of exactly its position, under concurrent folding', async () => {
  const random = seeded(3);
  const runtime = await start([balanceV1]);
  let writing = true;
  const live = (async () => {
    while (writing) await traffic(runtime.log, 20, random);
  })();
  const taken: TableSnapshot[] = [];
  for (let n = 1; n <= 8; n++) {
    const before = await runtime.log.head();
    await until(async () => (await readRegistry(runtime.db)).every(({ checkpoint }) => checkpoint > before));
    taken.push(await take(runtime, balanceV1));
  }
  writing = false;
  await live;
  for (const { tableName, checkpoint, rows } of taken) {
    const copied = await storedTable(runtime.db, { ...balanceV1, tableName });
    const upTo = globalPosition(checkpoint);
    const log = { ...runtime.log, horizon: async () => upTo };
    expect(copied).toEqual(await foldedTable(log, balanceV1));
    expect(BigInt(copied.size)).toBe(rows);
  }
});

test('snapshots are listed with their creator, time and reason, until they are dropped', async () => {
  const runtime = await start([balanceV1, balanceV2]);
  await traffic(runtime.log, 100, seeded(1));
  await caughtUp(runtime);
  const first = await take(runtime, balanceV1);
  const other = await take(runtime, balanceV2);
  const second = await take(runtime, balanceV1);
  expect(first).toMatchObject({ actor: 'ann', reason: 'before the deploy', automatic: false, deadLetters: 0 });
  expect(first.codeFingerprint).toBe(balanceV1.codeFingerprint);
  expect((await listSnapshots(runtime.db)).map(({ id }) => id)).toEqual([second.id, first.id, other.id]);
  await dropSnapshot(runtime.db, 'balance', 1, first.id, step);
  expect((await listSnapshots(runtime.db, 'balance', 1)).map(({ id }) => id)).toEqual([second.id]);
  expect(await runtime.db.query({ text: `select from pg_tables where tablename = '${first.tableName}'` })).toEqual([]);
  await expect(dropSnapshot(runtime.db, 'balance', 1, first.id, step)).rejects.toThrow(
    `balance@1 has no snapshot ${first.id}. It has ${second.id} (position ${second.checkpoint}); without a snapshot, a rebuild folds the whole log.`,
  );
  await runtime.lifecycle.retire('balance', 1, step);
  expect((await listSnapshots(runtime.db)).map(({ id }) => id)).toEqual([other.id]);
  await expect(take(runtime, balanceV1)).rejects.toThrow(
    'balance@1 is retired; only a version that is maintained can have a snapshot taken.',
  );
});

test('a rebuild from a position starts with the newest snapshot at or below it', async () => {
  const random = seeded(2);
  const runtime = await start([balanceV1]);
  const taken: TableSnapshot[] = [];
  for (let n = 0; n < 3; n++) {
    await traffic(runtime.log, 50, random);
    await caughtUp(runtime);
    taken.push(await take(runtime, balanceV1));
  }
  const [first, second, third] = taken as [TableSnapshot, TableSnapshot, TableSnapshot];
  const from = async (position: bigint) => {
    const snapshot = { upTo: globalPosition(position) };
    await requestRebuild(runtime.db, balanceV1, readSchema, step, { log: runtime.log, snapshot });
    await rebuilt(runtime);
    await expectTrue(runtime, balanceV1);
    const [asked] = await runtime.db.query<{ snapshot: string }>({
      text: `
        select substring(reason from 'from snapshot \\d+ at position \\d+') as snapshot
        from refold.transitions
        where reason like 'rebuild asked for%'
        order by id desc
        limit 1`,
    });
    return asked?.snapshot;
  };
  const saidOf = ({ id, checkpoint }: TableSnapshot) => `from snapshot ${id} at position ${checkpoint}`;
  expect(await from(second.checkpoint)).toBe(saidOf(second));
  expect(await from(third.checkpoint - 1n)).toBe(saidOf(second));
  expect(await from(third.checkpoint + 1_000n)).toBe(saidOf(third));
  await expect(from(first.checkpoint - 1n)).rejects.toThrow(
    `balance@1 has no snapshot at or below position ${first.checkpoint - 1n}. It has ${third.id} (position ${third.checkpoint}), ${second.id} (position ${second.checkpoint}), ${first.id} (position ${first.checkpoint}); without a snapshot, a rebuild folds the whole log.`,
  );
});

test('a snapshot of a table that was declared differently is refused, with the way out, and nothing is started', async () => {
  const runtime = await start([balanceV1]);
  await traffic(runtime.log, 50, seeded(2));
  await caughtUp(runtime);
  const { id } = await take(runtime, balanceV1);
  await runtime.db.query({ text: `update refold.table_snapshots set table_fingerprint = 'another'` });
  const message = `balance@1: snapshot ${id} was taken of a table that was declared differently, so its rows don't fit. Rebuild from the whole log ('refold rebuild balance@1'), or from a snapshot of the table as it is declared now.`;
  const options = { db: runtime.db, log: runtime.log, readSchema, projection: balanceV1 };
  const from = { log: runtime.log, snapshot: 'latest' } as const;
  await expect(requestRebuild(runtime.db, balanceV1, readSchema, step, from)).rejects.toThrow(message);
  await expect(rebuildInPlace(options, step, 'latest')).rejects.toThrow(message);
  await expect(restoreSnapshot(options, step, 'latest')).rejects.toThrow(message);
  expect(await readAllRebuilds(runtime.db)).toEqual([]);
  await expectTrue(runtime, balanceV1);
});

test('a restored snapshot is served at once, complete as of its position, and catches up', async () => {
  const runtime = await start([balanceV1]);
  await credit(runtime, '1');
  await runtime.log.append({ family: account, streamId: 'b', events: [{ type: 'Opened', payload: { owner: 'Bea' } }] });
  await caughtUp(runtime);
  const rows = runtime.live.row(balanceV1, ['b'], ['amount'], { after: null });
  const amount = async () => String((await rows.next()).value?.row?.amount);
  expect(await amount()).toBe('0');
  await take(runtime, balanceV1);
  await runtime.log.append({
    family: account,
    streamId: 'b',
    events: [{ type: 'Credited', payload: { amount: '5' } }],
  });
  expect(await amount()).toBe('5');
  await caughtUp(runtime);
  await runtime.db.query({ text: 'update read_models.balance set amount = 666' });
  const observer = await start([balanceV1], false);
  await stop(runtime);

  await restoreSnapshot({ ...observer, readSchema, projection: balanceV1 }, step, 'latest');
  await observer.versions.refresh();
  expect(await observer.db.query({ text: 'select amount from read_models.balance' })).toMatchObject([
    { amount: '0.00' },
  ]);
  const [registered] = await readRegistry(observer.db);
  expect(registered).toMatchObject({ state: 'active', checkpoint: 2n });
  const again = await start([balanceV1]);
  await caughtUp(again);
  await expectTrue(again, balanceV1);
});

test('a version that is rebuilt in place is not served until it is complete: the next lower version answers, or none', async () => {
  const runtime = await start([balanceV1, balanceV2], true);
  await traffic(runtime.log, 200, seeded(5));
  await caughtUp(runtime);
  await stop(runtime);
  const idle = await start([balanceV1, balanceV2], false);
  const served = () => {
    const { active, projection } = idle.versions.current().served.get('balance') ?? {};
    return `${projection?.id} ${active ? 'active' : 'not ready'}`;
  };
  const inPlace = (projection: Projection) => rebuildInPlace({ ...idle, readSchema, projection }, step);
  expect(served()).toBe('balance@2 active');
  await inPlace(balanceV2);
  await idle.versions.refresh();
  expect(served()).toBe('balance@1 active');
  expect(await idle.db.query({ text: 'select from read_models.balance' })).toHaveLength(
    (await foldedTable(idle.log, balanceV1)).size,
  );
  await inPlace(balanceV1);
  await idle.versions.refresh();
  expect(served()).toMatch(/ not ready$/);
  await expect(idle.db.query({ text: 'select from read_models.balance' })).rejects.toThrow('does not exist');
  const again = await start([balanceV1, balanceV2]);
  await rebuilt(again);
  await idle.versions.refresh();
  expect(served()).toBe('balance@2 active');
  await expectTrue(again, balanceV1);
  await expectTrue(again, balanceV2);
});

test('a version is active again after a rebuild in place only if it was active before', async () => {
  const manual = defineProjection({
    name: 'opened',
    version: 1,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, { payload: { owner } }) => ({ owner }) },
    activation: 'manual',
  });
  const runtime = await start([manual]);
  const state = async () => (await readRegistry(runtime.db))[0]?.state;
  const inPlace = async () => {
    await rebuildInPlace({ ...runtime, readSchema, projection: manual }, step);
    await until(async () => (await readAllRebuilds(runtime.db)).length === 0);
  };
  await until(async () => (await state()) === 'ready');
  await inPlace();
  expect(await state()).toBe('ready');
  await runtime.lifecycle.activate('opened', 1, step);
  await inPlace();
  expect(await state()).toBe('active');
});

test('the dead letters of a snapshot are kept with it, and folded in their place if the fixed code can fold them', async () => {
  const failing = credits(true);
  const before = await start([failing]);
  await credit(before, '1', '13', '2');
  await caughtUp(before);
  expect(await take(before, failing)).toMatchObject({ deadLetters: 2, checkpoint: 3n });
  await credit(before, '3');
  await caughtUp(before);
  const from = { log: before.log, snapshot: 'latest' } as const;

  // With the same code, all blocked events stay blocked.
  await requestRebuild(before.db, failing, readSchema, step, from);
  await rebuilt(before);
  const options = { ...before, readSchema, projection: failing };
  expect(await amounts(before, failing)).toEqual(['1']);
  expect((await listDeadLetters(options)).map(({ position, error }) => [position, error === null])).toEqual([
    [2n, false],
    [3n, true],
    [4n, true],
  ]);

  await stop(before);
  const mended = credits(false);
  const runtime = await start([mended]);
  await requestRebuild(runtime.db, mended, readSchema, step, { log: runtime.log, snapshot: 'latest' });
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(['1', '13', '2', '3']);
  expect(await listDeadLetters({ ...runtime, readSchema, projection: mended })).toEqual([]);
});

test('what an operator has discarded is left out of every rebuild, and is no difference to verify', async () => {
  const failing = credits(true);
  const runtime = await start([failing]);
  const options = { ...runtime, readSchema, projection: failing };
  await credit(runtime, '1', '13', '2');
  await caughtUp(runtime);
  await take(runtime, failing);
  expect(await discardDeadLetters(options, step)).toEqual({ folded: 1, discarded: 1, left: 0 });
  await credit(runtime, '3');
  await caughtUp(runtime);
  const expected = ['1', '2', '3'];
  expect(await amounts(runtime, failing)).toEqual(expected);
  expect(await verifyVersion(options)).toMatchObject({ differences: 0, rowsCompared: 1 });
  const from = { log: runtime.log, snapshot: 'latest' } as const;
  for (const rebuild of [
    () => requestRebuild(runtime.db, failing, readSchema, step),
    () => requestRebuild(runtime.db, failing, readSchema, step, from),
    () => rebuildInPlace(options, step),
    () => rebuildInPlace(options, step, 'latest'),
    () => restoreSnapshot(options, step, 'latest'),
  ]) {
    await rebuild();
    await rebuilt(runtime);
    expect(await amounts(runtime, failing)).toEqual(expected);
    expect(await listDeadLetters(options)).toEqual([]);
  }
});

test('events discarded during a rebuild are discarded in its table, too', async () => {
  const failing = credits(true);
  const runtime = await start([failing]);
  const options = { ...runtime, readSchema, projection: failing };
  await credit(runtime, '1', '13', '2');
  await caughtUp(runtime);
  await take(runtime, failing);
  await stop(runtime);
  const idle = await start([failing], false);
  await requestRebuild(idle.db, failing, readSchema, step, { log: idle.log, snapshot: 'latest' });
  expect(await discardDeadLetters({ ...options, ...idle }, step)).toEqual({ folded: 1, discarded: 1, left: 0 });
  const again = await start([failing]);
  await rebuilt(again);
  expect(await amounts(again, failing)).toEqual(['1', '2']);
  expect(await listDeadLetters({ ...options, ...again })).toEqual([]);
  await expect(retryDeadLetters({ ...options, ...again }, step)).rejects.toThrow('has no dead letters');
});

test('an event that was discarded does not wait behind an earlier failure in the table of a rebuild', async () => {
  const failing = credits(['13', '14']);
  const runtime = await start([failing]);
  const options = { ...runtime, readSchema, projection: failing };
  await credit(runtime, '1', '13', '14', '2');
  await caughtUp(runtime);
  await take(runtime, failing);
  const half = { ...options, projection: credits(['14']) };
  expect(await retryDeadLetters(half, step)).toEqual({ folded: 1, discarded: 0, left: 2 });
  expect(await discardDeadLetters(half, step)).toEqual({ folded: 1, discarded: 1, left: 0 });
  expect(await amounts(runtime, failing)).toEqual(['1', '13', '2']);

  await requestRebuild(runtime.db, failing, readSchema, step, { log: runtime.log, snapshot: 'latest' });
  await acceptOnceHeld(runtime);
  await rebuilt(runtime);
  expect(await amounts(runtime, failing)).toEqual(['1']);
  expect((await listDeadLetters(options)).map(({ position }) => position)).toEqual([2n, 4n]);
  expect(await retryDeadLetters({ ...options, projection: credits(false) }, step)).toMatchObject({ folded: 2 });
  expect(await amounts(runtime, failing)).toEqual(['1', '13', '2']);
});

test('discarded events can be recalled: the next rebuild folds them', async () => {
  const failing = credits(true);
  const before = await start([failing]);
  await credit(before, '1', '13', '2');
  await caughtUp(before);
  await discardDeadLetters({ ...before, readSchema, projection: failing }, step);
  await stop(before);
  const mended = credits(false);
  const runtime = await start([mended]);
  const options = { ...runtime, readSchema, projection: mended };
  expect(await listDiscards(options.db, options.projection.name, options.projection.version)).toMatchObject([
    { position: 2n, key: ['a'], type: 'Credited', actor: 'ann' },
  ]);
  await expect(recallDiscarded(options, step, 'b')).rejects.toThrow('credits@1 has nothing discarded of the row b.');
  expect(await recallDiscarded(options, step, 'a')).toBe(1);
  expect(await amounts(runtime, mended)).toEqual(['1', '2']);
  await requestRebuild(runtime.db, mended, readSchema, step);
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(['1', '13', '2']);
});

test.each([
  'beside the table',
  'in place',
])('an event that is recalled during a rebuild (%s) is left to the next rebuild, and past states lack it until then', async (form) => {
  const before = await start([credits(true)]);
  await credit(before, '1', '13', '2');
  await caughtUp(before);
  await discardDeadLetters({ ...before, readSchema, projection: credits(true) }, step);
  await stop(before);
  const mended = credits(false);
  const idle = await start([mended], false);
  const options = { ...idle, readSchema, projection: mended };
  const rebuild = () =>
    form === 'in place' ? rebuildInPlace(options, step) : requestRebuild(idle.db, mended, readSchema, step);
  const past = async () => {
    await idle.versions.refresh();
    const states = await createRowHistory(idle.db, idle.db)(idle.versions.stored(mended), ['a']);
    return states.map(({ row }) => row?.amounts);
  };
  await rebuild();
  await recallDiscarded(options, step);
  const runtime = await start([mended]);
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(['1', '2']);
  expect(await past()).toEqual([['1'], ['1', '2']]);
  await rebuild();
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(['1', '13', '2']);
  expect(await past()).toEqual([['1'], ['1', '13'], ['1', '13', '2']]);
});

test('a snapshot without the events recalled since cannot start any form of rebuild, until the whole log was folded', async () => {
  const failing = credits(true);
  const before = await start([failing]);
  await credit(before, '1', '13', '2');
  await caughtUp(before);
  const early = await take(before, failing);
  await discardDeadLetters({ ...before, readSchema, projection: failing }, step);
  await take(before, failing);
  await stop(before);
  const mended = credits(false);
  const runtime = await start([mended]);
  const options = { ...runtime, readSchema, projection: mended };
  await recallDiscarded(options, step);
  // The table still lacks the event, and so does a copy of the table.
  const late = await take(runtime, mended);
  const refusal =
    /^credits@1 has snapshot \d, whose rows lack the event at position 2, which was discarded then and has been recalled since\./;
  const from = { log: runtime.log, snapshot: 'latest' } as const;
  await expect(requestRebuild(runtime.db, mended, readSchema, step, from)).rejects.toThrow(refusal);
  await expect(rebuildInPlace(options, step, { id: late.id })).rejects.toThrow(refusal);
  await expect(restoreSnapshot(options, step, 'latest')).rejects.toThrow(refusal);
  const whole = ['1', '13', '2'];
  await requestRebuild(runtime.db, mended, readSchema, step, { log: runtime.log, snapshot: { id: early.id } });
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(whole);
  expect(await verifyVersion(options)).toMatchObject({ differences: 0 });
  await take(runtime, mended);
  await requestRebuild(runtime.db, mended, readSchema, step, from);
  await rebuilt(runtime);
  expect(await amounts(runtime, mended)).toEqual(whole);
});

test('a snapshot whose rows contain events discarded since cannot start a rebuild', async () => {
  const mended = await start([credits(false)]);
  await credit(mended, '1', '13', '2');
  await caughtUp(mended);
  await take(mended, credits(false));
  await stop(mended);
  const failing = credits(true);
  const runtime = await start([failing]);
  const options = { ...runtime, readSchema, projection: failing };
  await requestRebuild(runtime.db, failing, readSchema, step);
  await acceptOnceHeld(runtime);
  await rebuilt(runtime);
  await discardDeadLetters(options, step);
  await expect(restoreSnapshot(options, step, 'latest')).rejects.toThrow(
    "credits@1 has snapshot 1, whose rows have taken in the event at position 2, which has been discarded since. Begin from a snapshot below that position, or from the whole log: 'refold rebuild credits@1'.",
  );
  expect(await amounts(runtime, failing)).toEqual(['1', '2']);
});
