import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineProjection, type RefoldError, t } from '../../../src/index.ts';
import { listDeadLetters, retryDeadLetters } from '../../../src/runtime/dead-letters/dead-letters.ts';
import { createProjectionUnits } from '../../../src/runtime/ownership/projection-units.ts';
import { diffVersions } from '../../../src/runtime/verification/diff.ts';
import { verifyVersion } from '../../../src/runtime/verification/verify.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { readWork } from '../../../src/store/ownership/work.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import type { ProcessorUnit } from '../../../src/store/server/processor-unit.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { storedTable } from '../../support/folded-table.ts';
import { inlineBalance, inlineOpenings } from '../../support/inline-domain.ts';
import {
  createInlineSetting,
  creditOf,
  expectRight,
  type InlineSetting,
  joined,
  open,
  statusOf,
  untilLive,
} from '../../support/inline-setting.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

let setting: InlineSetting;

beforeEach(async () => {
  setting = await createInlineSetting();
});
afterEach(() => setting.close());

const readSchema = 'read_models';
const step = { actor: 'ann', reason: 'a test' };

/** Fails on credits of 13. */
const fussy = (policy: 'stop' | 'skip' | 'dead-letter', fails = true) =>
  defineProjection({
    name: 'fussy',
    version: 1,
    events: account,
    mode: 'inline',
    onError: policy,
    codeVersion: 1,
    table: { accountId: t.text().primaryKey(), credits: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      Credited: (row, event) => {
        if (event.payload.amount === '13' && fails) throw new Error('thirteen is bad luck');
        return { credits: (row?.credits ?? 0) + 1 };
      },
    },
  });

test('rows commit with the append: every later read sees them', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  for (let n = 0; n < 20; n++) {
    await open(runtime, `account-${n % 5}`);
    const { position } = await runtime.log.append(creditOf(`account-${n % 5}`, '2.50'));
    await expectRight(runtime, inlineBalance);
    await runtime.positions.waitFor(inlineBalance, position, { timeout: 300_000 });
  }
  expect(await statusOf(runtime, inlineBalance)).toMatchObject({ state: 'active', lag: 0n, lagEvents: 0n });
});

test('concurrent appends of several processes into several versions produce the rows of the log', async () => {
  const processes = await Promise.all([1, 2, 3].map(() => setting.start([inlineBalance, inlineOpenings])));
  const [first] = processes as [(typeof processes)[number]];
  await untilLive(first, inlineBalance, inlineOpenings);
  const random = seeded(7);
  await Promise.all(processes.map((runtime) => traffic(runtime.log, 700, random)));
  for (const projection of [inlineBalance, inlineOpenings]) {
    await expectRight(first, projection);
    expect((await statusOf(first, projection))?.inline).toBe('live');
  }
});

test('a user’s own transaction sees the rows inside, and discards them when it is rolled back', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  const rolledBack = runtime.db.transaction(async (tx) => {
    await runtime.log.append(creditOf('a', '5'), tx);
    await runtime.log.append(creditOf('a', '6'), tx);
    const [row] = await tx.query<{ amount: string }>({ text: 'select amount from read_models.inline_balance_v1' });
    expect(row?.amount).toBe('11.00');
    throw new Error('no');
  });
  await expect(rolledBack).rejects.toThrow('no');
  await expectRight(runtime, inlineBalance);
  const other = runtime.db.transaction((tx) => runtime.log.append(creditOf('a'), tx), { isolation: 'repeatable read' });
  await expect(other).rejects.toThrow('are appended in transactions that are READ COMMITTED, found REPEATABLE READ.');
});

test('an append whose event can’t be folded is refused, and concurrent appends are written', async () => {
  const projection = fussy('stop');
  const runtime = await setting.start([projection]);
  await untilLive(runtime, projection);
  const appends = Array.from({ length: 30 }, (_, n) =>
    runtime.log.append(creditOf(`a${n}`, n % 10 === 3 ? '13' : '1')),
  );
  const settled = await Promise.allSettled(appends);
  for (const [n, outcome] of settled.entries()) {
    if (n % 10 !== 3) expect(outcome.status).toBe('fulfilled');
    else
      expect((outcome as PromiseRejectedResult).reason).toMatchObject({
        code: 'EVOLVE_FAILED',
        message: expect.stringContaining('Nothing was appended, because the rows of fussy@1 commit with the append'),
      } satisfies Partial<RefoldError>);
  }
  expect(await runtime.log.streamVersion(account, 'a3')).toBe(0);
  expect((await storedTable(runtime.db, projection)).size).toBe(27);
  const within = runtime.db.transaction(async (tx) => {
    await runtime.log.append(creditOf('b', '1'), tx);
    await expect(runtime.log.append(creditOf('c', '13'), tx)).rejects.toThrow('thirteen is bad luck');
    await runtime.log.append(creditOf('d', '1'), tx);
  });
  await within;
  expect((await storedTable(runtime.db, projection)).size).toBe(29);
});

test('the error of an append that waits too long for a row names the row and its projection', async () => {
  const runtime = await setting.start([inlineOpenings]);
  await untilLive(runtime, inlineOpenings);
  const { db } = runtime;
  const inline = { db, readSchema, projections: [inlineOpenings], freeze: false };
  const impatient = createEventLog(db, [account], { lockTimeoutMs: 200, inline });
  const opened = (streamId: string, owner: string) => {
    const events = [{ type: 'Opened', payload: { owner } }] as const;
    return { family: account, streamId, events };
  };
  await db.transaction(async (tx) => {
    await runtime.log.append(opened('first', 'Ada'), tx);
    const other = await Promise.allSettled([
      impatient.append(opened('second', 'Bob')),
      impatient.append(creditOf('third')),
    ]);
    expect(other).toMatchObject([
      {
        reason: {
          code: 'STREAM_LOCKED',
          message: expect.stringMatching(
            /^The append waited \d+ ms for the row \["\*"\] of inline_openings@1: another transaction/,
          ),
          fields: {
            streams: [{ family: 'account', streamId: 'second' }],
            inline: 'the row ["*"] of inline_openings@1',
          },
        },
      },
      { status: 'fulfilled' },
    ]);
    const within = db.transaction(async (mine) => {
      await mine.query({ text: `set local lock_timeout = '100ms'` });
      await runtime.log.append(opened('fourth', 'Ada'), mine);
    });
    await expect(within).rejects.toMatchObject({
      fields: { sqlState: '55P03', inline: 'the row ["Ada"] of inline_openings@1' },
    });
  });
  await impatient.append(opened('second', 'Bob'));
  await expectRight(runtime, inlineOpenings);
});

test('a conflict of one append affects neither the rows nor concurrent appends', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  const settled = await Promise.allSettled([
    runtime.log.append(creditOf('a')),
    runtime.log.append({ ...creditOf('a'), expectedVersion: 'no-stream' }),
    runtime.log.append({ ...creditOf('a'), idempotencyKey: 'once' }),
    runtime.log.append({ ...creditOf('a'), idempotencyKey: 'once' }),
  ]);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  await expectRight(runtime, inlineBalance);
});

test('dead letters of appends block later events of their row, and a retry repairs it', async () => {
  const projection = fussy('dead-letter');
  const runtime = await setting.start([projection]);
  await untilLive(runtime, projection);
  for (const amount of ['1', '13', '2']) await runtime.log.append(creditOf('a', amount));
  await runtime.log.append(creditOf('b', '1'));
  const options = { db: runtime.db, log: runtime.log, readSchema, projection };
  expect(await listDeadLetters(options)).toMatchObject([{ type: 'Credited' }, { type: 'Credited', error: null }]);
  expect((await storedTable(runtime.db, projection)).get('["a"]')).toMatchObject({ credits: 1 });
  await retryDeadLetters({ ...options, projection: fussy('dead-letter', false) }, step);
  expect((await storedTable(runtime.db, projection)).get('["a"]')).toMatchObject({ credits: 3 });
  await untilLive(runtime, projection);
});

test('during a retry of many dead letters, appends continue without the version, which joins them again', async () => {
  const projection = fussy('dead-letter');
  const mended = fussy('dead-letter', false);
  const runtime = await setting.start([projection]);
  await untilLive(runtime, projection);
  await runtime.log.append({
    ...creditOf('a'),
    events: Array.from({ length: 600 }, () => creditOf('a', '13').events[0]),
  });
  const lives = async () => {
    const [row] = await runtime.db.query<{ lives: bigint }>({
      text: `select pg_sequence_last_value('refold.inline_lives') as lives`,
    });
    return row?.lives;
  };
  const before = await lives();
  const options = { db: runtime.db, log: runtime.log, readSchema, projection: mended };
  const [retried] = await Promise.all([retryDeadLetters(options, step), runtime.log.append(creditOf('b'))]);
  expect(retried).toMatchObject({ folded: 600, left: 0 });
  await until(async () => (await lives()) !== before);
  await untilLive(runtime, projection);
  await runtime.log.append(creditOf('b'));
  await expectRight(runtime, mended);
});

test('with skip, the row stays as it was and the append is written', async () => {
  const projection = fussy('skip');
  const runtime = await setting.start([projection]);
  await untilLive(runtime, projection);
  for (const amount of ['1', '13', '2']) await runtime.log.append(creditOf('a', amount));
  expect((await storedTable(runtime.db, projection)).get('["a"]')).toMatchObject({ credits: 2 });
  expect(await runtime.log.streamVersion(account, 'a')).toBe(3);
});

test('rows fold in order even if the key is known only with the event’s place, and if there are more rows than locks', async () => {
  const lines = defineProjection({
    name: 'lines',
    version: 1,
    events: account,
    mode: 'inline',
    table: { accountId: t.text().primaryKey(), line: t.integer().primaryKey(), amount: t.text() },
    key: (event) => ({ accountId: event.streamId, line: event.streamPosition }),
    evolve: { Credited: (_, event) => ({ amount: event.payload.amount }) },
  });
  const spread = defineProjection({
    name: 'spread',
    version: 1,
    events: account,
    mode: 'inline',
    table: { number: t.integer().primaryKey(), digest: t.text() },
    key: (event) => Array.from({ length: 600 }, (_, n) => ({ number: n + Number(event.streamId.length > 8) }).number),
    evolve: { Credited: (row, event) => ({ digest: `${row?.digest ?? ''} ${event.position}`.slice(-60) }) },
  });
  const processes = await Promise.all([1, 2].map(() => setting.start([lines, spread])));
  const [first] = processes as [(typeof processes)[number]];
  await untilLive(first, lines, spread);
  const appends = processes.flatMap((runtime) =>
    Array.from({ length: 20 }, (_, n) => runtime.log.append(creditOf(`account-${n % 13}`, String(n + 1)))),
  );
  await Promise.all(appends);
  await expectRight(first, lines);
  await expectRight(first, spread);
});

test('verify and diff compare one moment, while appends continue', async () => {
  const behind = defineProjection({
    name: 'inline_balance',
    version: 2,
    events: account,
    table: inlineBalance.columns,
    key: (event) => event.streamId,
    evolve: {
      Opened: (_, event) => ({ owner: event.payload.owner, amount: '0', movements: 0 }),
      Credited: (row, event) =>
        row && { ...row, amount: row.amount.plus(event.payload.amount), movements: row.movements + 1 },
      Debited: (row, event) =>
        row && { ...row, amount: row.amount.minus(event.payload.amount), movements: row.movements + 1 },
      Closed: () => null,
    },
  });
  const runtime = await setting.start([inlineBalance, behind]);
  await untilLive(runtime, inlineBalance);
  let going = true;
  const appends = (async () => {
    const random = seeded(11);
    while (going) await traffic(runtime.log, 30, random);
  })();
  const options = { db: runtime.db, log: runtime.log, readSchema };
  for (let n = 0; n < 10; n++)
    expect(await verifyVersion({ ...options, projection: inlineBalance })).toMatchObject({ differences: 0 });
  going = false;
  await appends;
  // A comparison waits only so long for the version that is behind.
  await runtime.positions.waitFor(behind, await runtime.log.head(), { timeout: 300_000 });
  const diff = await diffVersions(runtime.db, readSchema, inlineBalance, behind);
  expect(diff).toMatchObject({ onlyOlder: 0, onlyNewer: 0 });
  expect(Object.values(diff.columns)).toEqual(Object.values(diff.columns).map(() => 0));
  await runtime.db.query({ text: 'update read_models.inline_balance_v1 set movements = movements + 1' });
  expect((await verifyVersion({ ...options, projection: inlineBalance })).differences).toBeGreaterThan(0);
});

test('subscribers end with the rows of the table, although commits come out of order', async () => {
  const runtime = await setting.start([inlineBalance, inlineOpenings]);
  await untilLive(runtime, inlineBalance, inlineOpenings);
  await open(runtime, 'account-0');
  const rows = runtime.live.row(inlineBalance, ['account-0'], ['movements'], { after: null });
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { row } of rows) seen.push(Number(row?.movements));
  })();
  await until(() => seen.at(-1) === 0);
  // Its change has a lower position than those committed before it.
  const release = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const late = runtime.db.transaction(async (tx) => {
    await runtime.log.append(creditOf('account-0'), tx);
    begun.resolve();
    await release.promise;
  });
  await begun.promise;
  for (let n = 1; n < 30; n++) await open(runtime, `account-${n}`, `owner-${n}`);
  release.resolve();
  await late;
  await until(() => seen.at(-1) === 1);
  await rows.return?.();
  await reading;
});

test('a version that is no longer inline is maintained asynchronously, and one that becomes inline joins the appends', async () => {
  const as = (mode: 'async' | 'inline') =>
    defineProjection({
      name: 'mode',
      version: 1,
      events: account,
      mode,
      codeVersion: 1,
      table: { accountId: t.text().primaryKey(), credits: t.integer() },
      key: (event) => event.streamId,
      evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }) },
    });
  for (const mode of ['async', 'inline', 'async', 'inline'] as const) {
    const projection = as(mode);
    const runtime = await setting.start([projection]);
    if (mode === 'inline') await untilLive(runtime, projection);
    else expect((await statusOf(runtime, projection))?.inline).toBeNull();
    for (let n = 0; n < 5; n++) {
      const { position } = await runtime.log.append(creditOf('a'));
      await runtime.positions.waitFor(projection, position, { timeout: 300_000 });
    }
    await expectRight(runtime, projection);
    await setting.stop(runtime);
  }
});

test('a processor that is claimed late folds nothing into a live version', async () => {
  const runtime = await setting.start([inlineBalance], { maintain: false });
  const units = createProjectionUnits({
    ...runtime,
    readSchema,
    projections: [inlineBalance],
    tables: { damageOf: () => null, damages: () => new Map(), look: async () => null },
    owner: 'late',
    freeze: false,
    logger: pino({ level: 'silent' }),
  });
  const [unit] = units(await readWork(runtime.db));
  await joined({ db: runtime.db, log: runtime.log, readSchema, freeze: false }, inlineBalance);
  expect(units(await readWork(runtime.db))).toEqual([]);
  const claim = await claimProcessor(runtime.db, unit?.unit as ProcessorUnit, 'late'); // there was one
  await expect(unit?.start(runtime.db, claim)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
});

test.each([
  'stop',
  'skip',
  'dead-letter',
] as const)('a discarded event is left out as a version goes live, with the policy %s', async (policy) => {
  const projection = fussy(policy, false);
  const runtime = await setting.start([projection], { maintain: false });
  for (const amount of ['1', '13', '2']) await runtime.log.append(creditOf('a', amount));
  // As if it began again from a snapshot.
  await runtime.db.query({
    text: `
      insert into refold.discards (name, version, position, key, event_type, stream_id, actor, reason)
      values ('fussy', 1, 2, '["a"]', 'Credited', 'a', 'ann', 'a test')`,
  });
  await joined({ db: runtime.db, log: runtime.log, readSchema, freeze: false }, projection);
  expect((await storedTable(runtime.db, projection)).get('["a"]')).toMatchObject({ credits: 2 });
});

test.each([
  ['skip', ["fussy@1: 1 events skipped. fussy@1: evolve of 'Credited' failed at position 2 "]],
  [
    'dead-letter',
    ['fussy@1: 2 dead letters: 1 could not be folded, 1 wait behind one of their row. fussy@1: evolve of'],
  ],
] as const)('what is left out as a version goes live is logged, with the policy %s', async (policy, expected) => {
  const projection = fussy(policy);
  const runtime = await setting.start([projection], { maintain: false });
  for (const amount of ['1', '13', '2']) await runtime.log.append(creditOf('a', amount));
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const options = { db: runtime.db, log: runtime.log, readSchema, freeze: false, logger };
  await joined(options, projection);
  expect(lines).toEqual(expected.map((line) => expect.stringContaining(line)));
});

test('appends do not fold into a retired version', async () => {
  const runtime = await setting.start([inlineBalance]);
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'a');
  await runtime.lifecycle.retire('inline_balance', 1, step, 3600);
  await open(runtime, 'b');
  expect((await storedTable(runtime.db, inlineBalance)).size).toBe(1);
});
