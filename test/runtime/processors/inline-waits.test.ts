import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineProjection, type Projection, t } from '../../../src/index.ts';
import { retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { rebuildInPlace, restoreSnapshot } from '../../../src/runtime/rebuilds/rebuild-in-place.ts';
import { takeSnapshot } from '../../../src/runtime/rebuilds/table-snapshots.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { isHeld, leaveInline } from '../../../src/runtime/versions/leave-inline.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { readAppending } from '../../../src/store/inline/inline-locks.ts';
import { sqlStateOf } from '../../../src/store/postgres/database-errors.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { seeded } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { storedTable } from '../../support/folded-table.ts';
import { inlineBalance, inlineOpenings } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  open,
  statusOf,
  untilLive,
} from '../../support/inline-setting.ts';
import { account, balanceTable } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { until } from '../../support/until.ts';

let setting: InlineSetting;

beforeEach(async () => {
  setting = await createInlineSetting({ defaultLimits: true });
});
afterEach(() => setting.close());

const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'a test' };
const inPlace = ({ db, log }: Runtime) => ({ db, log, readSchema, projection: inlineBalance });
const snapshotOf = ({ db }: Runtime) => takeSnapshot({ db, readSchema, name: 'inline_balance', version: 1 }, step);

// Each step waits five seconds for the open transaction. A holder of any other lock may be stopped for a moment.
const impatience = 3_000;

/** A user's own transaction that has appended, and stays open while `work` runs. */
async function whileOpen<T>(runtime: Runtime, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return runtime.db.transaction(async (tx) => {
    await runtime.log.append(creditOf('held'), tx);
    return work(tx);
  });
}

const letters = (fails: boolean) =>
  defineProjection({
    name: 'letters',
    version: 1,
    events: account,
    mode: 'inline',
    onError: 'dead-letter',
    codeVersion: 1,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, event) => {
        if (fails && event.payload.amount === '13') throw new Error('thirteen is bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
  });

interface OperatorStep {
  /** Begins the step. Its promise may wait for the open transaction. */
  begin(runtime: Runtime): Promise<unknown>;
  /** Whether the step waits for the open transaction, or does not need to. */
  waiting(runtime: Runtime): Promise<boolean>;
  /** Checked once the open transaction has ended. */
  ended?(runtime: Runtime): Promise<boolean>;
}

const isLeaving =
  (projection: Projection = inlineBalance) =>
  async (runtime: Runtime) =>
    (await statusOf(runtime, projection))?.inline === 'leaving';
/** No version tries to join the appends any more until the transaction has ended. */
const hasBeenOpenForLong = async ({ db }: Runtime) =>
  (await readAppending(db)).some(({ seconds }) => (seconds ?? 0) > 1);
const nothingLeft = async ({ db }: Runtime) => (await readRebuilds(db)).length === 0;

const steps: Record<string, OperatorStep> = {
  'a rebuild': {
    begin: ({ db }) => requestRebuild(db, inlineBalance, readSchema, step),
    // It takes over between appends: the version stays live.
    waiting: async ({ db }) => (await readRebuilds(db)).some(({ eventsFolded }) => eventsFolded > 0n),
    ended: nothingLeft,
  },
  'a rebuild in place': { begin: (runtime) => rebuildInPlace(inPlace(runtime), step), waiting: isLeaving() },
  'a restored snapshot': {
    begin: (runtime) => restoreSnapshot(inPlace(runtime), step, 'latest'),
    waiting: isLeaving(),
  },
  'a retry of dead letters': {
    begin: ({ db, log }) => retryDeadLetters({ db, log, readSchema, projection: letters(false) }, step),
    waiting: isLeaving(letters(true)),
  },
  'a new inline version': {
    begin: () => setting.start([inlineBalance, inlineOpenings, letters(true)]),
    waiting: async (runtime) => (await statusOf(runtime, inlineOpenings))?.state === 'active',
  },
  'a version that is no longer inline': {
    begin: () => setting.start([behind, letters(true)]),
    waiting: isLeaving(),
  },
  'a retirement': {
    begin: ({ lifecycle }) => lifecycle.retire('letters', 1, step, 3600),
    waiting: async (runtime) => (await statusOf(runtime, letters(true)))?.state === 'retired',
  },
  'a deployment in which a process appends without knowing the versions': {
    begin: ({ db }) => createEventLog(db, [account]).append(creditOf('elsewhere')),
    waiting: isLeaving(),
  },
};

const behind = defineProjection({
  name: inlineBalance.name,
  version: 1,
  events: account,
  table: balanceTable,
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }) },
});

test.each(
  Object.entries(steps),
)('appends continue while %s waits for a transaction that has appended and stays open', async (what, {
  begin,
  waiting,
  ended,
}) => {
  const runtime = await setting.start([inlineBalance, letters(true)]);
  await untilLive(runtime, inlineBalance, letters(true));
  await open(runtime, 'held');
  await runtime.log.append(creditOf('poison', '13'));
  await runtime.log.append(creditOf('poison', '1'));
  if (what === 'a restored snapshot') {
    await snapshotOf(runtime);
    await untilLive(runtime, inlineBalance);
  }
  const impatient = createEventLog(runtime.db, [account], {
    lockTimeoutMs: impatience,
    inline: { db: runtime.db, readSchema, projections: [inlineBalance, letters(true)], freeze: false },
  });
  const [begun] = await whileOpen(runtime, async () => {
    await until(() => hasBeenOpenForLong(runtime));
    const beginning = begin(runtime);
    beginning.catch(() => {}); // awaited below
    await until(() => waiting(runtime));
    // The server refuses an append that waits longer for any lock. A failure names what was waited for.
    for (let n = 0; n < 20; n++) await open({ log: impatient }, `account-${n}`);
    return [beginning];
  });
  // On a slow machine it may have waited for too long.
  await begun.catch((error) => (isHeld(error) ? begin(runtime) : Promise.reject(error)));
  await until(async () => (await ended?.(runtime)) ?? true);
  if (what === 'a version that is no longer inline') return;
  await untilLive(runtime, inlineBalance);
  await runtime.log.append(creditOf('account-1'));
  await expectRight(runtime, inlineBalance);
});

test('an append that began before a version left the appends, and got its row lock afterwards, leaves the row to the processor', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'held');
  const behindIt = await whileOpen(runtime, async () => {
    const append = createEventLog(runtime.db, [account], {
      inline: { db: runtime.db, readSchema, projections: [inlineBalance], freeze: false },
    }).append(creditOf('held', '7'));
    await until(async () => {
      const waiting = await runtime.db.query({
        text: `
          select from pg_locks
          where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
      });
      return waiting.length > 0;
    });
    const leaving = leaveInline(runtime.db, inlineBalance);
    leaving.catch(() => {}); // awaited below
    await until(() => isLeaving()(runtime));
    return [append, leaving];
  });
  await Promise.all(behindIt);
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
  const rows = await storedTable(runtime.db, runtime.versions.stored(inlineBalance));
  expect(rows.get('["held"]')).toMatchObject({ amount: '8', movements: 2 });
});

test('a writer that takes a version out of the appends and is rolled back changes nothing, also for writers that skipped it later', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  const older = createEventLog(runtime.db, [account]);
  const rolledBack = runtime.db.transaction(async (tx) => {
    await older.append(creditOf('elsewhere'), tx);
    throw new Error('no');
  });
  await expect(rolledBack).rejects.toThrow('no');
  await open(runtime, 'a');
  expect((await statusOf(runtime, inlineBalance))?.inline).toBe('live');
  const undecided = runtime.db.transaction(async (tx) => {
    await older.append(creditOf('elsewhere'), tx);
    await runtime.log.append(creditOf('a', '5')); // it can't know whether the other one will commit
    expect((await statusOf(runtime, inlineBalance))?.inline).toBe('leaving');
    throw new Error('no');
  });
  await expect(undecided).rejects.toThrow('no');
  await untilLive(runtime, inlineBalance);
  await expectRight(runtime, inlineBalance);
});

test('a snapshot that can’t be taken names the session that holds the version, and leaves nothing behind', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'held');
  await whileOpen(runtime, async (tx) => {
    const [own] = await tx.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
    await until(() => hasBeenOpenForLong(runtime));
    const taking = snapshotOf(runtime);
    taking.catch(() => {}); // awaited below
    const impatient = createEventLog(runtime.db, [account], {
      lockTimeoutMs: impatience,
      inline: { db: runtime.db, readSchema, projections: [inlineBalance], freeze: false },
    });
    for (let n = 0; n < 20; n++) await open({ log: impatient }, `account-${n}`);
    await expect(taking).rejects.toThrow(
      new RegExp(
        `^inline_balance@1 is inline, and session ${own?.pid} of 'refold.*' has appended to it in a transaction that is open for \\d+ s \\(idle in transaction\\)\\. .* End the transaction, or try again later\\.$`,
      ),
    );
    expect((await statusOf(runtime, inlineBalance))?.inline).toBe('live');
    expect(await runtime.db.query({ text: 'select from refold.table_snapshots' })).toEqual([]);
  });
  await snapshotOf(runtime);
  await untilLive(runtime, inlineBalance);
});

test('a version that leaves and joins repeatedly, under appends of every kind, equals the fold of the log', async () => {
  await setting.close();
  setting = await createInlineSetting(); // rows are waited for here, for any time
  const processes = await Promise.all([1, 2].map(() => setting.start([inlineBalance, inlineOpenings])));
  const [first] = processes as [Runtime];
  await untilLive(first, inlineBalance, inlineOpenings);
  const older = createEventLog(first.db, [account]);
  const random = seeded(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const streamId = () => `account-${pick(20)}`;
  const rolledBack = new Error('rolled back');
  // Here, transactions lock streams and rows in any order.
  const unlessDeadlocked = (error: unknown) => {
    if (error !== rolledBack && sqlStateOf(error) !== '40P01') throw error;
  };
  const append = (log: EventLog, tx?: Queryable) =>
    random() < 0.3
      ? log.append(
          { family: account, streamId: streamId(), events: [{ type: 'Opened', payload: { owner: `o${pick(5)}` } }] },
          tx,
        )
      : log.append(creditOf(streamId(), `${1 + pick(9)}.00`), tx);
  const appendOne = (log: EventLog) => append(log).catch(unlessDeadlocked);
  const transaction = (logs: readonly EventLog[]) =>
    first.db
      .transaction(async (tx) => {
        for (let n = 0; n <= pick(3); n++) await append(logs[pick(logs.length)] as EventLog, tx); // it is not empty
        if (random() < 0.3) throw rolledBack;
      })
      .catch(unlessDeadlocked);
  const ignoreHeld = (error: unknown) => {
    if (!isHeld(error)) throw error;
  };
  const kinds = [
    () => appendOne((processes[pick(2)] as Runtime).log),
    () => transaction(processes.map(({ log }) => log)),
    () => transaction([first.log, older]),
    () => appendOne(older),
    () => leaveInline(first.db, [inlineBalance, inlineOpenings][pick(2)] as Projection).catch(ignoreHeld),
    () => first.db.query({ text: 'update refold.inline_versions set passed_at = null' }).catch(unlessDeadlocked),
  ];
  const often = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 5];
  const work = Array.from({ length: 8 }, async () => {
    for (let n = 0; n < effort(100, 20); n++) await kinds[often[pick(often.length)] as number]?.(); // an index of both
  });
  await Promise.all(work);
  await first.db.query({ text: 'update refold.inline_versions set passed_at = null' });
  await untilLive(first, inlineBalance, inlineOpenings);
  for (const projection of [inlineBalance, inlineOpenings]) await expectRight(first, projection);
});
