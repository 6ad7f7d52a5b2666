import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineConfig, type Projection, type RefoldError } from '../../../src/index.ts';
import { checkStoredDeclarations } from '../../../src/runtime/activation/check-declarations.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  retryDeadLetters,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { listDiscards } from '../../support/discards.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { creditOf, expectRight, open, statusOf, untilLive } from '../../support/inline-setting.ts';
import { createRuntimeSetting, type RuntimeSetting } from '../../support/runtime-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { uniqueOwner } from '../../support/unique-domain.ts';
import { until } from '../../support/until.ts';

let setting: RuntimeSetting & { close(): Promise<void> };

beforeEach(async () => {
  setting = await createRuntimeSetting();
});
afterEach(() => setting.close());

const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'a test' };
const holder = uniqueOwner();
const unavailable = { code: 'UNIQUE_CHECK_UNAVAILABLE' } satisfies Partial<RefoldError>;

/** Appends that would wait for long are refused soon: the tests wait for the refusal. */
function start(projections: readonly Projection[], { impatient = false, maintain = true } = {}): Promise<Runtime> {
  const database = impatient ? { appendLockTimeout: 100 } : {};
  return setting.start(defineConfig({ projections, events: [account], database }), { maintain });
}

async function owners({ db }: Runtime): Promise<string[]> {
  const rows = await db.query<{ owner: string }>({
    text: `select payload ->> 'owner' as owner from refold.events where type = 'Opened' order by position`,
  });
  return rows.map(({ owner }) => owner);
}

test('on an empty database, the second of two commands right after the start is refused', async () => {
  const runtime = await start([holder]);
  await open(runtime, 'a', 'Ada');
  await expect(open(runtime, 'b', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  expect(await owners(runtime)).toEqual(['Ada']);
});

test.each([
  'skip',
  'dead-letter',
] as const)('a value that is taken refuses the append whatever onError says: %s', async (onError) => {
  const projection = uniqueOwner({ onError });
  const runtime = await start([projection]);
  await open(runtime, 'a', 'Ada');
  const taken = { code: 'EVOLVE_FAILED', fields: expect.objectContaining({ taken: true }) };
  const together = await Promise.allSettled([open(runtime, 'b', 'Ada'), open(runtime, 'c', 'Cleo')]);
  expect(together).toMatchObject([{ status: 'rejected', reason: taken }, { status: 'fulfilled' }]);
  const within = runtime.db.transaction((tx) => {
    const events = [{ type: 'Opened', payload: { owner: 'Cleo' } }] as const;
    return runtime.log.append({ family: account, streamId: 'd', events }, tx);
  });
  await expect(within).rejects.toMatchObject(taken);
  // An event that is skipped claims no value. One that waits as a dead letter could claim a value that another row has taken meanwhile.
  const failing = open(runtime, 'e', 'nobody').then(
    () => 'written',
    ({ code }: RefoldError) => code,
  );
  expect(await failing).toBe(onError === 'skip' ? 'written' : 'EVOLVE_FAILED');
  expect(await owners(runtime)).toEqual(['Ada', 'Cleo', ...(onError === 'skip' ? ['nobody'] : [])]);
  expect(await statusOf(runtime, projection)).toMatchObject({ inline: 'live', deadLetters: 0 });
});

test('appends to a row that waits for a dead letter are refused until it is retried or discarded', async () => {
  const before = await start([inlineBalance]);
  await open(before, 'a', 'nobody');
  const projection = uniqueOwner({ onError: 'dead-letter' });
  const runtime = await start([inlineBalance, projection]);
  await untilLive(runtime, projection);
  await expect(open(runtime, 'a', 'Ada')).rejects.toMatchObject({
    ...unavailable,
    message: expect.stringContaining(
      'The unique values of the row ["a"] of unique_owner@1 can\'t be checked: the row waits',
    ),
    fields: { types: ['account.Opened'] },
  });
  await open(runtime, 'b', 'Ada');
  const { db, log } = runtime;
  await discardDeadLetters({ db, log, readSchema, projection }, step);
  await expect(open(runtime, 'a', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await open(runtime, 'a', 'Mia');
  expect(await owners(runtime)).toEqual(['nobody', 'Ada', 'Mia']);
});

test('while a new version is built from a log with events, processes that declare it wait, and others go on', async () => {
  const before = await start([inlineBalance]);
  await open(before, 'a', 'Ada');
  const gateway = await start([inlineBalance, holder], { impatient: true, maintain: false });
  await expect(open(gateway, 'b', 'Bob')).rejects.toMatchObject({
    ...unavailable,
    message: expect.stringMatching(/^The unique values of unique_owner@1 can't be checked at the moment: since \d{4}-/),
    fields: { types: ['account.Opened'], waitedMs: expect.any(Number) },
  });
  await gateway.log.append(creditOf('a'));
  await open(before, 'c', 'Cleo');
  const patient = await start([inlineBalance, holder], { maintain: false });
  const waiting = open(patient, 'd', 'Ada');
  const worker = await start([inlineBalance, holder]);
  await expect(waiting).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await untilLive(worker, holder);
  await expect(open(before, 'e', 'Eve')).rejects.toMatchObject({
    code: 'UNIQUE_CHECK_UNAVAILABLE',
    message: expect.stringContaining("this writer can't do that, because it doesn't declare the version"),
  });
  await before.log.append(creditOf('a'));
  expect(await owners(worker)).toEqual(['Ada', 'Cleo']);
  expect((await statusOf(worker, holder))?.inline).toBe('live');
});

test('of an append by SQL, events that the rule is about are refused, and others are written', async () => {
  const runtime = await start([holder]);
  const insert = (type: string, payload: object) =>
    runtime.db.query({
      text: `
        insert into refold.events (stream_position, id, family, stream_id, type, payload)
        values (1, gen_random_uuid(), 'account', $1, $1, $2)`,
      values: [type, JSON.stringify(payload)],
    });
  const append = (type: string, payload: object) => {
    const event = { part: 1, number: 1, id: crypto.randomUUID(), version: 1, family: 'account', stream: `of ${type}` };
    return runtime.db.query({
      text: `select refold.append('{account}', $1, '{1}', null, '{1}', '{1}', '{-1}', '{1}', '{0}', $2)`,
      values: [[`of ${type}`], JSON.stringify([{ ...event, type, payload, metadata: {} }])],
    });
  };
  for (const write of [insert, append]) {
    await expect(write('Opened', { owner: 'Ada' })).rejects.toMatchObject(unavailable);
    await write('Credited', { amount: '1' });
  }
  await runtime.db.transaction(async (tx) => {
    await runtime.log.append(
      { family: account, streamId: 'mine', events: [{ type: 'Opened', payload: { owner: 'Mia' } }] },
      tx,
    );
    await tx.query({
      text: `
        insert into refold.events (stream_position, id, family, stream_id, type, payload)
        values (2, gen_random_uuid(), 'account', 'mine', 'Credited', '{"amount":"1"}')`,
    });
  });
  expect(await owners(runtime)).toEqual(['Mia']);
  expect((await statusOf(runtime, holder))?.inline).toBe('live');
});

test('while the version is paused, appends are refused; after that, they are checked again', async () => {
  const runtime = await start([holder], { impatient: true });
  await open(runtime, 'a', 'Ada');
  await runtime.lifecycle.pause('unique_owner', 1, step);
  await expect(open(runtime, 'b', 'Ada')).rejects.toMatchObject(unavailable);
  const settled = await Promise.allSettled([open(runtime, 'c', 'Cleo'), runtime.log.append(creditOf('d'))]);
  expect(settled).toMatchObject([{ status: 'rejected', reason: unavailable }, { status: 'fulfilled' }]);
  await runtime.lifecycle.resume('unique_owner', 1, step);
  await untilLive(runtime, holder);
  await expect(open(runtime, 'b', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  expect(await owners(runtime)).toEqual(['Ada']);
});

test('during a rebuild in place, appends wait and are checked', async () => {
  const runtime = await start([holder]);
  await open(runtime, 'a', 'Ada');
  const { db, log } = runtime;
  await rebuildInPlace({ db, log, readSchema, projection: holder }, step);
  await expect(open(runtime, 'b', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await open(runtime, 'c', 'Cleo');
  expect(await owners(runtime)).toEqual(['Ada', 'Cleo']);
});

test('a version with the same rule is enough: processes of two releases append, and neither writes a value twice', async () => {
  const next = uniqueOwner({ version: 2 });
  const old = await start([holder]);
  await open(old, 'a', 'Ada');
  const both = await start([holder, next]);
  await untilLive(both, holder, next);
  await expect(open(old, 'b', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await open(old, 'c', 'Cleo');
  await until(async () => (await statusOf(both, next))?.inline !== 'live');
  await expect(open(both, 'd', 'Cleo')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await open(both, 'e', 'Eve');
  await untilLive(both, next);
  expect(await owners(both)).toEqual(['Ada', 'Cleo', 'Eve']);
});

test('a rule that the active version lacks begins with the activation, and ends with the retirement', async () => {
  const lax = uniqueOwner({ unique: false });
  const next = uniqueOwner({ version: 2 });
  const old = await start([lax], { impatient: true });
  await open(old, 'a', 'Ada');
  const both = await start([lax, next], { impatient: true });
  await until(async () => (await statusOf(both, next))?.state === 'active');
  await untilLive(both, next);
  await expect(open(old, 'b', 'Bob')).rejects.toMatchObject(unavailable);
  await expect(open(both, 'b', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await both.lifecycle.rollback('unique_owner', step);
  await expect(open(old, 'b', 'Bob')).rejects.toMatchObject(unavailable);
  await both.lifecycle.retire('unique_owner', 2, step);
  await open(old, 'b', 'Ada');
  expect(await owners(both)).toEqual(['Ada', 'Ada']);
});

test('duplicates that are in the log before the rule are listed with the row that has the value, and discarded one by one', async () => {
  const before = await start([inlineBalance]);
  for (const [streamId, owner] of Object.entries({ a: 'Ada', b: 'Ada', c: 'Cleo', d: 'Ada' }))
    await open(before, streamId, owner);
  const runtime = await start([inlineBalance, holder]);
  const options = { db: runtime.db, log: runtime.log, readSchema, projection: holder };
  const stopsAt = (position: bigint) =>
    until(async () => {
      const letters = await listDeadLetters(options);
      return letters[0]?.position === position && letters;
    });
  expect(await stopsAt(2n)).toMatchObject([
    {
      key: null,
      type: 'Opened',
      streamId: 'b',
      takenBy: [['a']],
      error: { message: expect.stringContaining("'owner' is already taken") },
    },
  ]);
  expect(await retryDeadLetters(options, step)).toMatchObject({ discarded: 0, continues: true });
  await stopsAt(2n);
  expect(await discardDeadLetters(options, step)).toEqual({ folded: 0, discarded: 1, left: 0, continues: true });
  await stopsAt(4n);
  await discardDeadLetters(options, step);
  await untilLive(runtime, holder);
  expect(await listDiscards(options.db, options.projection.name, options.projection.version)).toMatchObject([
    { position: 2n, key: null, streamId: 'b' },
    { position: 4n, key: null, streamId: 'd' },
  ]);
  await expect(open(runtime, 'e', 'Ada')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  expect(await verifyVersion({ ...options, db: runtime.db })).toMatchObject({ rowsCompared: 2, differences: 0 });
  await requestRebuild(runtime.db, holder, readSchema, step);
  await until(async () => (await readRebuilds(runtime.db)).length === 0);
  await expect(open(runtime, 'e', 'Cleo')).rejects.toMatchObject({ code: 'EVOLVE_FAILED' });
  await open(runtime, 'd', 'Dora');
});

test('a declaration that ends the rule, or lets nobody check it, says so', async () => {
  const other = uniqueOwner({ version: 2, unique: false });
  const first = await start([holder, other]);
  await open(first, 'a', 'Ada');
  await setting.stop(first);
  const next = await start([other], { impatient: true });
  const refused =
    'unique_owner@1 is not declared, and no other version holds the unique rule of owner: appends of account.Opened, account.Closed are refused';
  expect(setting.messages).toContainEqual(expect.stringContaining(refused));
  await expect(open(next, 'b', 'Bob')).rejects.toMatchObject(unavailable);
  const config = defineConfig({ projections: [uniqueOwner({ mode: 'async' }), other], events: [account] });
  const ends = "unique_owner@1 is declared 'async' now, which ends the unique rule of owner: nothing checks appends of";
  expect(await checkStoredDeclarations(next.db, config)).toContainEqual({
    kind: 'note',
    message: expect.stringContaining(ends),
  });
  const without = await setting.start(config);
  expect(setting.messages).toContainEqual(expect.stringContaining(ends));
  await open(without, 'b', 'Ada');
});

test('a rebuild beside the table and a snapshot under traffic refuse nothing, and no value gets two owners', async () => {
  const processes = [await start([holder]), await start([holder])];
  const [first] = processes as [Runtime];
  let going = true;
  let values = 0;
  const claimed = new Map<string, number>();
  const unexpected: unknown[] = [];
  /** Two callers claim each value, through different processes. */
  const claim = async (runtime: Runtime, stream: string, owner: string) => {
    try {
      await open(runtime, stream, owner);
      claimed.set(owner, (claimed.get(owner) ?? 0) + 1);
    } catch (error) {
      if ((error as RefoldError).code !== 'EVOLVE_FAILED') unexpected.push(error);
    }
  };
  const traffic = Array.from({ length: 4 }, async () => {
    while (going) {
      const n = values++;
      await Promise.all(processes.map((runtime, of) => claim(runtime, `${n} of ${of}`, `owner-${n}`)));
    }
  });
  const lives = async () => {
    const [row] = await first.db.query<{ lives: bigint }>({
      text: `select pg_sequence_last_value('refold.inline_lives') as lives`,
    });
    return row?.lives;
  };
  const before = await lives();
  await requestRebuild(first.db, holder, readSchema, step);
  await until(async () => (await readRebuilds(first.db)).length === 0);
  const snapshot = await takeSnapshot({ db: first.db, readSchema, name: 'unique_owner', version: 1 }, step);
  going = false;
  await Promise.all(traffic);
  expect(unexpected).toEqual([]);
  expect([...claimed.values()].every((times) => times === 1)).toBe(true);
  expect(await owners(first)).toHaveLength(claimed.size);
  await expectRight(first, holder);
  expect(await lives()).toBe(before); // it never left
  expect(first.versions.stored(holder).tableName).toBe('unique_owner_v1_g2');
  const [kept] = await first.db.query<{ rows: bigint; events: bigint }>({
    text: `
      select (select count(*) from read_models.${snapshot.tableName}) as rows, count(*) as events
      from refold.events
      where type = 'Opened' and position <= $1`,
    values: [snapshot.checkpoint],
  });
  expect(kept?.rows).toBe(kept?.events);
});
