import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineCommand } from '../../../src/commands/define-command.ts';
import { defineState, type StreamState } from '../../../src/commands/define-state.ts';
import type { StateOptions } from '../../../src/commands/state-snapshots.ts';
import { defineEvents, type EventFamily } from '../../../src/events/event-family.ts';
import { beginning } from '../../../src/events/global-position.ts';
import { executeCommand } from '../../../src/runtime/commands/command-handler.ts';
import { createLongStreamLog, describeLongStreams } from '../../../src/runtime/commands/long-streams.ts';
import { createSnapshotWriter, type SnapshotWriter } from '../../../src/runtime/commands/snapshot-writer.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import type { Queryable, Statement } from '../../../src/store/statements/statement.ts';
import { effort } from '../../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { account, deposited } from './families.ts';

let testDatabase: TestDatabase;
let db: Database;
let log: EventLog;
const failures: unknown[] = [];
let writer: SnapshotWriter;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url });
  log = createEventLog(db, [account]);
  writer = createSnapshotWriter(db, (error) => failures.push(error));
});
afterAll(async () => {
  await writer.stop();
  await db.close();
  await testDatabase.drop();
});

interface Account {
  readonly balance: number;
  readonly amounts: Readonly<Record<string, number>>;
  readonly owner?: string | undefined;
}

const accountState = (options?: StateOptions<Account>) =>
  defineState(
    account,
    (): Account => ({ balance: 0, amounts: {} }),
    {
      Opened: (state, { payload }) => ({ ...state, owner: payload.owner }),
      Deposited: (state, { payload, streamPosition }) => ({
        ...state,
        balance: state.balance + payload.amount,
        amounts: { [`#${streamPosition}`]: payload.amount, ...state.amounts },
      }),
      Withdrawn: (state, { payload }) => ({ ...state, balance: state.balance - payload.amount, owner: undefined }),
    },
    options,
  );

const depositInto = <S>(state: StreamState<typeof account, S>) =>
  defineCommand({
    name: 'deposit',
    input: z.object({ id: z.string(), amount: z.int() }),
    state,
    stream: ({ id }) => id,
    decide: ({ amount }) => deposited(amount),
  });

/** Runs the command and waits for its snapshot. */
async function deposit<S>(state: StreamState<typeof account, S>, id: string, amount: number, target = log) {
  const result = await executeCommand(target, depositInto(state), { id, amount }, {}, { snapshots: writer });
  await writer.stop();
  return result;
}

const snapshotsOf = (streamId: string) =>
  db.query<{ stream_position: bigint; fingerprint: string }>({
    text: 'select stream_position, fingerprint from refold.stream_snapshots where stream_id = $1 order by 1',
    values: [streamId],
  });

describe('the state of a stream', () => {
  test('is available as of any stream position, log position or time', async () => {
    const state = accountState();
    const { events } = await log.append({ family: account, streamId: 'past', events: [1, 2, 3].map(deposited) });
    await log.append({ family: account, streamId: 'elsewhere', events: [deposited(100)] });
    const later = await log.append({ family: account, streamId: 'past', events: [deposited(4)] });
    const balances = async (...ats: (number | bigint | Date | string)[]) =>
      Promise.all(
        ats.map(async (at) => (await log.stateOf(state, 'past', { at: at as number })).state.balance), // each kind of `at`
      );
    expect(await log.stateOf(state, 'past')).toMatchObject({
      version: 4,
      position: later.position,
      snapshotVersion: 0,
    });
    expect(await balances(0, 1, 2, 3, 4, 5)).toEqual([0, 1, 3, 6, 10, 10]);
    expect(await balances(...events.map(({ position }) => position), later.position - 1n)).toEqual([1, 3, 6, 6]);
    const { recordedAt } = events[0] as { recordedAt: string };
    expect(await balances(recordedAt, '1999-12-31T00:00:00+01:00', new Date(Date.now() + 60_000))).toEqual([6, 0, 10]);
    expect(await log.stateOf(state, 'nowhere')).toEqual({
      state: { balance: 0, amounts: {} },
      version: 0,
      position: 0n,
      snapshotVersion: 0,
    });
  });

  const invalid = [-1, 1.5, 'yesterday', '2026-01-31T12:00:00', '2026-01-31T12:00:00.123456789Z', new Date(Number.NaN)];
  test.for(invalid)('is refused as of %s', async (at) => {
    await expect(log.stateOf(accountState(), 'past', { at })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      issues: [{ path: ['at'] }],
    });
  });
});

describe('a command without a state', () => {
  const write = defineCommand({
    name: 'write',
    input: z.object({ to: z.array(z.string()) }),
    events: account,
    stream: ({ to }) => to[0] as string,
    decide: (_, state, { streamVersion }) => {
      expect(state).toBeUndefined();
      return deposited(streamVersion);
    },
  });
  const stateless = defineState(account, () => undefined, {});
  const writeAll = defineCommand({
    name: 'writeAll',
    input: z.object({ to: z.array(z.string()) }),
    states: [stateless],
    streams: ({ to }) => to.map((streamId) => ({ state: stateless, streamId })),
    decide: ({ to }) => to.map(() => []) as never,
  });

  test('reads one row of a stream of any length, without its payload, and knows the version', async () => {
    const length = 1500;
    await log.append({ family: account, streamId: 'long', events: Array.from({ length }, () => deposited(1)) });
    const read: object[] = [];
    const noted = async <Row extends object>(target: Queryable, statement: Statement) => {
      const rows = await target.query<Row>(statement);
      if (statement.text.trimStart().startsWith('select') && statement.text.includes('refold.events'))
        read.push(...rows);
      return rows;
    };
    const counted = createEventLog(
      {
        ...db,
        query: (statement) => noted(db, statement),
        transaction: (work, options) =>
          db.transaction((target) => work({ ...target, query: (statement) => noted(target, statement) }), options),
      },
      [account],
    );
    const first = await executeCommand(counted, write, { to: ['long'] });
    expect(first).toMatchObject({ streamVersion: length + 1, events: [{ payload: { amount: length } }] });
    const expectedVersion = length;
    await expect(executeCommand(counted, write, { to: ['long'] }, { expectedVersion })).rejects.toMatchObject({
      code: 'CONCURRENCY_CONFLICT',
      actual: length + 1,
    });
    expect(await executeCommand(counted, writeAll, { to: ['long', 'none'] })).toMatchObject({
      position: first.position,
      streams: [{ version: length + 1 }, { version: 0 }],
    });
    expect(read.map((row) => Object.keys(row))).toEqual(Array(3).fill(['position', 'stream_position']));
  });

  test('has the state of any moment', async () => {
    const positions = (await log.append({ family: account, streamId: 'moments', events: [deposited(1), deposited(2)] }))
      .events;
    for (const at of [0, 1, 2, 9])
      expect(await log.stateOf(stateless, 'moments', { at })).toEqual({
        state: undefined,
        version: Math.min(at, 2),
        position: positions[Math.min(at, 2) - 1]?.position ?? beginning,
        snapshotVersion: 0,
      });
  });
});

test('a long stream that is read without snapshots is named once for each state', async () => {
  const events = Array.from({ length: 1000 }, () => deposited(1));
  for (const streamId of ['named', 'named too', 'short'])
    await log.append({ family: account, streamId, events: streamId === 'short' ? events.slice(1) : events });
  const warnings: object[] = [];
  const onFolded = createLongStreamLog({ warn: (...line: unknown[]) => warnings.push(line) });
  const noticing = createEventLog(db, [account], { onFolded });
  const total = (options?: StateOptions<number>) =>
    defineState(account, () => 0, { Deposited: (sum, { payload }) => sum + payload.amount }, options);
  const [state, other, kept] = [total(), total(), total({ snapshotEvery: 10 })];
  await deposit(kept, 'named', 1, noticing);
  await deposit(state, 'short', 1, noticing);
  expect(warnings).toEqual([]);
  for (const streamId of ['named', 'named too', 'named']) await deposit(state, streamId, 1, noticing);
  const line = [
    { family: 'account', streamId: 'named', events: 1001 },
    expect.stringMatching(/1001 events, all of its stream 'named'.* \{ snapshotEvery: 100 \}/),
  ];
  expect(warnings).toEqual([line]);
  await noticing.statesOf([
    { state: other, streamId: 'short' },
    { state: other, streamId: 'named too' },
  ]);
  expect(warnings).toHaveLength(2);

  const commands = [depositInto(state), depositInto(kept)];
  expect(await describeLongStreams(db, [depositInto(kept)])).toEqual([]);
  expect(await describeLongStreams(db, commands)).toEqual([
    expect.stringMatching(/^The stream 'long' of account has 1501 events.*snapshotEvery/),
  ]);
});

describe('a snapshot', () => {
  test('is written after so many events, and read in one statement with the later events', async () => {
    const state = accountState({ snapshotEvery: 10 });
    await log.append({ family: account, streamId: 'kept', events: Array.from({ length: 9 }, () => deposited(1)) });
    await deposit(state, 'kept', 1);
    expect(await snapshotsOf('kept')).toEqual([]);
    await deposit(state, 'kept', 1);
    expect(await snapshotsOf('kept')).toMatchObject([{ stream_position: 10n }]);

    const sent: string[] = [];
    const query = <Row extends object>(statement: Statement) => {
      sent.push(statement.text);
      return db.query<Row>(statement);
    };
    const counted = createEventLog({ ...db, query }, [account]);
    expect(await counted.stateOf(state, 'kept')).toMatchObject({
      state: { balance: 11 },
      version: 11,
      snapshotVersion: 10,
    });
    expect(sent).toHaveLength(1);
    await deposit(state, 'kept', 1, counted);
    expect(sent).toHaveLength(3); // reading the state, and the append
  });

  test('is replaced by later ones of the same code, and is never read by other code', async () => {
    const [before, after] = [accountState({ snapshotEvery: 2 }), accountState({ snapshotEvery: 2, codeVersion: 2 })];
    for (let count = 0; count < 12; count++) await deposit(before, 'edited', 1);
    expect((await snapshotsOf('edited')).map((row) => row.stream_position)).toEqual([8n, 10n]);
    expect(await log.stateOf(after, 'edited')).toMatchObject({ version: 12, snapshotVersion: 0 });
    await deposit(after, 'edited', 1);
    // Old processes of the same deployment still read their own snapshots.
    expect((await log.stateOf(before, 'edited')).snapshotVersion).toBe(10);
    await testDatabase.administer(`update refold.stream_snapshots set taken_at = taken_at - interval '2 days'`);
    await deposit(after, 'edited', 1);
    await deposit(after, 'edited', 1);
    expect(new Set((await snapshotsOf('edited')).map((row) => row.fingerprint)).size).toBe(1);
    expect((await log.stateOf(after, 'edited')).snapshotVersion).toBeGreaterThan(0);
  });

  test('holds the state before the decision, even if decide mutates it', async () => {
    const state = accountState({ snapshotEvery: 1 });
    const careless = defineCommand({
      name: 'careless',
      input: z.object({ id: z.string() }),
      state,
      stream: ({ id }) => id,
      decide(_, found) {
        Object.assign(found, { balance: -1000 });
        return [];
      },
    });
    await deposit(state, 'careless', 5);
    await executeCommand(log, careless, { id: 'careless' }, {}, { snapshots: writer });
    await writer.stop();
    expect(await log.stateOf(state, 'careless')).toMatchObject({ state: { balance: 5 }, snapshotVersion: 1 });
  });

  test('that can’t be written fails no command', async () => {
    failures.length = 0;
    const broken = createSnapshotWriter({ query: () => Promise.reject(new Error('no disk')) }, (error) =>
      failures.push(error),
    );
    const state = accountState({ snapshotEvery: 1 });
    for (const amount of [1, 2, 3]) {
      await executeCommand(log, depositInto(state), { id: 'unlucky', amount }, {}, { snapshots: broken });
    }
    await broken.stop();
    expect(failures).toEqual([new Error('no disk'), new Error('no disk')]);
    expect((await log.stateOf(state, 'unlucky')).state.balance).toBe(6);
  });
});

describe('a state that JSON would change', () => {
  const values: [string, unknown][] = [
    ['a bigint', 1n],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['undefined', [undefined]],
    ['NaN', Number.NaN],
    ['-0', -0],
    ['half of a surrogate pair', '\ud83d'],
  ];
  test.for(values)('with %s is not kept, and is reported once', async ([said, value]) => {
    failures.length = 0;
    const state = defineState(account, () => ({ deep: { part: value as string | null } }), {}, { snapshotEvery: 1 });
    const command = defineCommand({
      name: 'note',
      input: z.object({ id: z.string() }),
      state,
      stream: ({ id }) => id,
      decide: () => deposited(1),
    });
    for (let count = 0; count < 3; count++)
      await executeCommand(log, command, { id: `unfit ${said}` }, {}, { snapshots: writer });
    await writer.stop();
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(new RegExp(`^A state of account has ${said} at 'deep.part.*encode`)),
    });
    expect(await snapshotsOf(`unfit ${said}`)).toEqual([]);
  });

  test('is kept if it has encode and decode, unless they lose something', async () => {
    failures.length = 0;
    const bigState = (decode: (json: { total: string }) => { total: bigint }) =>
      defineState(
        account,
        () => ({ total: 0n }),
        { Deposited: ({ total }, { payload }) => ({ total: total + BigInt(payload.amount) }) },
        { snapshotEvery: 1, encode: ({ total }) => ({ total: String(total) }), decode },
      );
    const run = async (state: ReturnType<typeof bigState>, id: string) => {
      await log.append({ family: account, streamId: id, events: [deposited(7)] });
      const none = { name: 'none', input: z.object({}), state, stream: () => id, decide: () => [] };
      await executeCommand(log, defineCommand(none), {}, {}, { snapshots: writer });
      await writer.stop();
      return log.stateOf(state, id);
    };
    const sound = bigState(({ total }) => ({ total: BigInt(total) }));
    expect(await run(sound, 'big')).toMatchObject({ state: { total: 7n }, snapshotVersion: 1 });
    expect(
      await run(
        bigState(() => ({ total: 0n })),
        'lossy',
      ),
    ).toMatchObject({ state: { total: 7n }, snapshotVersion: 0 });
    expect(failures).toMatchObject([{ code: 'INVALID_STATE', message: expect.stringContaining("'decode'") }]);
  });
});

test.for([
  [{ snapshotEvery: 0 }, "'snapshotEvery' is a whole number from 1 on, found 0."],
  [{ encode: String }, "'encode' and 'decode' belong together"],
  [{ snapshotsEvery: 5 }, "unknown option 'snapshotsEvery'. Did you mean 'snapshotEvery'?"],
])('invalid options of a state are refused: %s', ([options, message]) => {
  expect(() => accountState(options as StateOptions<Account>)).toThrow(message as string);
});

// Two versions of the same events: amounts first, cents later.
const amounts = defineEvents('purse', { Put: z.object({ amount: z.number(), note: z.string() }) });
const cents = defineEvents(
  'purse',
  { Put: z.object({ cents: z.number(), note: z.string() }) },
  { upcasters: { Put: [({ amount, note }: { amount: number; note: string }) => ({ cents: amount * 100, note })] } },
);

interface Code {
  readonly family: EventFamily;
  readonly version: number;
}

type Seen = Readonly<Record<string, number | object>>;

/** The same handler text for every version: only `codeVersion` and the family's upcasters distinguish one code from another. */
const purseState = ({ family, version }: Code, every: number | undefined) =>
  defineState(
    family,
    (): Seen => ({ version }),
    {
      Put: (state: Seen, event: { payload: unknown; streamPosition: number }) => ({
        [`${version}.${event.streamPosition}`]: event.payload as object, // valid by its schema
        ...state,
      }),
    } as never, // the family's types are unknown here
    { codeVersion: version, ...(every === undefined ? {} : { snapshotEvery: every }) },
  );

test('the state is the same with and without snapshots, for any snapshotEvery, any code that wrote the events and any code that took the snapshots', async () => {
  const logs = new Map<EventFamily, EventLog>([amounts, cents].map((family) => [family, createEventLog(db, [family])]));
  const code = fc.record({
    family: fc.constantFrom<EventFamily>(amounts, cents),
    version: fc.integer({ min: 1, max: 2 }),
  });
  const every = fc.integer({ min: 1, max: 6 });
  // Code without an upcaster cannot read what code with it writes, so it only runs before.
  const step = fc.record({
    code,
    every,
    notes: fc.array(fc.string({ unit: 'binary' }), { maxLength: 4 }),
    at: fc.nat(20),
  });
  failures.length = 0;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.boolean(), async (steps, sorted) => {
      const streamId = `any ${++run}`;
      const inOrder = steps.toSorted((a, b) => Number(a.code.family === cents) - Number(b.code.family === cents));
      for (const { code, every, notes, at } of sorted
        ? inOrder
        : steps.map((one) => ({ ...one, code: { ...one.code, family: cents } }))) {
        const ownLog = logs.get(code.family) as EventLog; // one of the two
        const state = purseState(code, every);
        const put = defineCommand({
          name: 'put',
          input: z.unknown(),
          state,
          stream: () => streamId,
          decide: () =>
            notes
              .filter((note) => note.isWellFormed() && !note.includes('\u0000'))
              .map((note) => ({
                type: 'Put',
                payload: code.family === cents ? { cents: 5, note } : { amount: 3, note },
              })),
        });
        await executeCommand(ownLog, put, {}, {}, { snapshots: writer });
        await writer.stop();
        const plain = purseState(code, undefined);
        for (const wanted of [undefined, at]) {
          const options = wanted === undefined ? {} : { at: wanted };
          const { snapshotVersion, ...found } = await ownLog.stateOf(state, streamId, options);
          const { snapshotVersion: none, ...folded } = await ownLog.stateOf(plain, streamId, options);
          expect(none).toBe(0);
          expect(snapshotVersion).toBeLessThanOrEqual(folded.version);
          expect(JSON.stringify(found.state)).toBe(JSON.stringify(folded.state)); // including the order of keys
          expect([found.version, found.position]).toEqual([folded.version, folded.position]);
        }
      }
    }),
    { numRuns: effort(30, 10) },
  );
  expect(failures).toEqual([]);
});
