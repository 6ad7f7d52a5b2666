import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  CommandRejected,
  ConcurrencyConflict,
  createRefold,
  defineCommand,
  defineConfig,
  defineProjection,
  defineState,
  t,
} from '../../../src/index.ts';
import { executeCommand } from '../../../src/runtime/commands/command-handler.ts';
import { createSnapshotWriter } from '../../../src/runtime/commands/snapshot-writer.ts';
import { createStreamTurns } from '../../../src/runtime/commands/stream-turns.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { account, all, deposited, transfer } from '../../store/log/families.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { untilActive } from '../../support/patient.ts';

const { database, db, log } = await databaseOfFile(account, transfer);

const withdrawn = (amount: number) => ({ type: 'Withdrawn', payload: { amount } }) as const;
const balance = defineState(
  account,
  () => ({ amount: 0 as number }),
  {
    Deposited: ({ amount }, { payload }) => ({ amount: amount + payload.amount }),
    Withdrawn: ({ amount }, { payload }) => ({ amount: amount - payload.amount }),
  },
  { snapshotEvery: 3 },
);
const booking = defineState(transfer, () => ({ count: 0 as number }), {
  Booked: ({ count }) => ({ count: count + 1 }),
});

const move = defineCommand({
  name: 'move',
  input: z.object({ from: z.string(), to: z.string(), amount: z.int() }),
  states: [balance],
  streams: ({ from, to }) => [
    { state: balance, streamId: from },
    { state: balance, streamId: to },
  ],
  decide({ amount }, [from]) {
    if (from.amount < amount) throw new CommandRejected('Not enough.');
    return [withdrawn(amount), deposited(amount)];
  },
});

/** Takes from one account if all of them together hold enough: reads more streams than it writes. */
const takeTogether = defineCommand({
  name: 'takeTogether',
  input: z.object({ from: z.string(), others: z.array(z.string()), amount: z.int() }),
  states: [balance],
  streams: ({ from, others }) => [from, ...others].map((streamId) => ({ state: balance, streamId })),
  decide({ amount }, states) {
    if (states.reduce((sum, state) => sum + state.amount, 0) < amount) throw new CommandRejected('Not enough.');
    return states.map((_, index) => (index === 0 ? withdrawn(amount) : []));
  },
});

let named = 0;
const newIds = (count: number) => Array.from({ length: count }, () => `account ${++named}`);
const amountOf = async (streamId: string) => (await log.stateOf(balance, streamId)).state.amount;

test('transfers at the same time keep the sum, overdraw nothing, and show every reader whole transfers only', async () => {
  const failures: unknown[] = [];
  const snapshots = createSnapshotWriter(db, (error) => failures.push(error));
  // Each log with its turns is a process of its own.
  const processes = [1, 2].map(() => ({ log: createEventLog(db, [account]), turns: createStreamTurns() }));
  const index = fc.nat({ max: 2 });
  const moves = fc.array(fc.record({ from: index, to: index, amount: fc.integer({ min: 1, max: 15 }) }), {
    minLength: 2,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(moves, async (wanted) => {
      const ids = newIds(3);
      const streams = ids.map((streamId) => ({ state: balance, streamId }));
      await log.appendToStreams({
        streams: ids.map((streamId) => ({ family: account, streamId, events: [deposited(10)] })),
      });
      let under = true;
      const sums = (async () => {
        const seen = new Set<number>();
        do {
          const found = await log.statesOf(streams);
          seen.add(found.reduce((sum, { state }) => sum + (state as { amount: number }).amount, 0)); // states of `balance`
        } while (under);
        return seen;
      })();
      const outcomes = await Promise.all(
        wanted.map(async ({ from, to, amount }, count) => {
          const input = { from: ids[from], to: ids[to], amount };
          const { log: own, turns } = processes[count % 2] ?? { log };
          return executeCommand(own, move, input, {}, { snapshots, ...(turns ? { turns } : {}) }).then(
            ({ events, streams: written, streamId, streamVersion }) => {
              expect(events.map((event) => [event.streamId, event.type])).toEqual([
                [ids[from], 'Withdrawn'],
                [ids[to], 'Deposited'],
              ]);
              expect(written.map((one) => one.streamId)).toEqual([ids[from], ids[to]]);
              expect(written[0]).toMatchObject({ streamId, version: streamVersion });
              return amount;
            },
            (error: unknown) => {
              if (from === to) expect(error).toMatchObject({ code: 'BAD_USER_INPUT' });
              else if (!(error instanceof CommandRejected || error instanceof ConcurrencyConflict)) throw error;
              return 0;
            },
          );
        }),
      ).finally(() => {
        under = false;
      });
      expect([...(await sums)]).toEqual([30]);
      const written = (await Promise.all(ids.map((id) => all(log.readStream(account, id))))).flat();
      const moved = (type: string) =>
        written.filter((event) => event.type === type).map(({ payload }) => (payload as { amount: number }).amount); // of a movement
      const expected = outcomes.filter((amount) => amount > 0).sort();
      expect(moved('Withdrawn').sort()).toEqual(expected);
      expect(moved('Deposited').sort()).toEqual([10, 10, 10, ...expected].sort());
      for (const id of ids) {
        let amount = 0;
        for await (const { type, payload } of log.readStream(account, id)) {
          amount += (payload as { amount: number }).amount * (type === 'Deposited' ? 1 : -1); // of a movement
          expect(amount).toBeGreaterThanOrEqual(0);
        }
      }
    }),
    { numRuns: effort(25, 6) },
  );
  await snapshots.stop();
  expect(failures).toEqual([]);
});

test('a stream that is only read counts: of two decisions that exclude each other, one is made', async () => {
  for (let round = 0; round < 10; round++) {
    const [a = '', b = ''] = newIds(2);
    await log.append({ family: account, streamId: a, events: [deposited(5)] });
    await log.append({ family: account, streamId: b, events: [deposited(5)] });
    const take = (from: string, other: string) =>
      executeCommand(createEventLog(db, [account]), takeTogether, { from, others: [other], amount: 10 });
    const outcomes = await Promise.allSettled([take(a, b), take(b, a)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await amountOf(a)) + (await amountOf(b))).toBe(0);
  }
});

test('a conflict on any stream decides again, with what was loaded once', async () => {
  const [a = '', b = ''] = newIds(2);
  let loads = 0;
  let decisions = 0;
  const cautious = defineCommand({
    name: 'cautious',
    input: z.object({}),
    states: [balance, booking],
    load: async (_, { metadata, now }) => {
      loads++;
      return { by: metadata.actor, at: now };
    },
    streams: () => [
      { state: balance, streamId: a },
      { state: booking, streamId: b },
    ],
    decide(_, [{ amount }, { count }], { loaded, streamVersions }) {
      decisions++;
      return [deposited(amount), { type: 'Booked', payload: { note: `${loaded.by} ${count} ${streamVersions}` } }];
    },
  });
  const others = [
    () => log.append({ family: account, streamId: a, events: [deposited(4)] }),
    () => log.append({ family: transfer, streamId: b, events: [{ type: 'Booked', payload: { note: 'first' } }] }),
  ];
  const overtaken: EventLog = {
    ...log,
    async appendToStreams(request) {
      await others.shift()?.();
      return log.appendToStreams(request);
    },
  };
  const { events, streams } = await executeCommand(overtaken, cautious, {}, { metadata: { actor: 'ann' } });
  expect(events.map(({ payload }) => payload)).toEqual([{ amount: 4 }, { note: 'ann 1 1,1' }]);
  expect(streams).toEqual([
    { family: 'account', streamId: a, version: 2 },
    { family: 'transfer', streamId: b, version: 2 },
  ]);
  expect([loads, decisions]).toEqual([1, 3]);
});

test('an event that can not be written leaves all streams as they were', async () => {
  const [a = '', b = ''] = newIds(2);
  const broken = defineCommand({
    name: 'broken',
    input: z.object({}),
    states: [balance],
    streams: () => [a, b].map((streamId) => ({ state: balance, streamId })),
    decide: () => [deposited(1), deposited(0.5)],
  });
  await expect(executeCommand(log, broken, {})).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
  expect(await log.statesOf([a, b].map((streamId) => ({ state: balance, streamId })))).toMatchObject([
    { version: 0 },
    { version: 0 },
  ]);
});

test('an idempotency key covers all streams', async () => {
  const [a = '', b = '', c = ''] = newIds(3);
  await log.append({ family: account, streamId: a, events: [deposited(10)] });
  const run = (to: string, amount = 4) =>
    executeCommand(log, move, { from: a, to, amount }, { idempotencyKey: `move ${a}` }, { forClients: true });
  const [first, again] = await Promise.all([run(b), run(b)]);
  expect(again).toEqual(first);
  expect(await run(b)).toEqual(first);
  const otherInput = { code: 'BAD_USER_INPUT', issues: [{ path: ['idempotencyKey'] }] };
  await expect(run(c)).rejects.toMatchObject(otherInput);
  // Keys of the program itself have no fingerprint: the streams tell them apart.
  const key = { idempotencyKey: `own ${a}` };
  await executeCommand(log, move, { from: a, to: b, amount: 1 }, key);
  await expect(executeCommand(log, move, { from: a, to: c, amount: 1 }, key)).rejects.toMatchObject(otherInput);
  expect([await amountOf(a), await amountOf(b), await amountOf(c)]).toEqual([5, 5, 0]);
});

test('a key that was used meanwhile answers also if loading or deciding fails because of it', async () => {
  const [a = ''] = newIds(1);
  const once = (fail: 'load' | 'decide') =>
    defineCommand({
      name: 'once',
      input: z.object({}),
      state: balance,
      stream: () => `${a} ${fail}`,
      async load() {
        if (fail === 'load' && (await log.streamVersion(account, `${a} load`)) > 0)
          throw new CommandRejected('Loaded.');
      },
      decide(_, { amount }) {
        if (amount > 0) throw new CommandRejected('Decided.');
        return deposited(1);
      },
    });
  for (const fail of ['load', 'decide'] as const) {
    const options = { idempotencyKey: `once ${a} ${fail}` };
    let first: unknown;
    const overtaken: EventLog = {
      ...log,
      async findAppend(key, fingerprint) {
        const found = await log.findAppend(key, fingerprint);
        first ??= await executeCommand(log, once(fail), {}, options);
        return found;
      },
    };
    expect(await executeCommand(overtaken, once(fail), {}, options)).toEqual(first);
  }
});

test('an expected version is of the first stream, and one that is no version is bad input', async () => {
  const [a = '', b = ''] = newIds(2);
  await log.append({ family: account, streamId: a, events: [deposited(10)] });
  const run = (expectedVersion: unknown) =>
    executeCommand(log, move, { from: a, to: b, amount: 1 }, { expectedVersion: expectedVersion as number }); // as a program without types may
  await expect(run(3)).rejects.toMatchObject({ code: 'CONCURRENCY_CONFLICT', actual: 1, fields: { streamId: a } });
  await expect(run('no-stream')).rejects.toBeInstanceOf(ConcurrencyConflict);
  for (const wrong of [-1, 1.5, Number.NaN, 'latest', '1', null, 1n, {}]) {
    await expect(run(wrong)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path: ['expectedVersion'] }] });
    const append = { family: account, streamId: b, events: [deposited(1)], expectedVersion: wrong as number };
    await expect(log.append(append)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  }
  for (const right of [1, 'stream-exists', 'any', undefined]) await run(right);
  expect(await amountOf(b)).toBe(4);
});

test('as a mutation, it returns the position of all, its first stream, and the row of that stream, also of an inline projection', async () => {
  const [a = '', b = ''] = newIds(2);
  const held = defineProjection({
    name: 'held',
    version: 1,
    mode: 'inline',
    events: account,
    table: { accountId: t.text().primaryKey(), amount: t.integer() },
    key: ({ streamId }) => streamId,
    evolve: {
      Deposited: (row, { payload }) => ({ amount: (row?.amount ?? 0) + payload.amount }),
      Withdrawn(row, { payload }) {
        if (payload.amount === 77) throw new Error('not 77');
        return { amount: (row?.amount ?? 0) - payload.amount };
      },
    },
  });
  const refold = await createRefold(
    defineConfig({
      projections: [held],
      commands: [move],
      database: { url: database.url },
      gateway: { port: 0, positionTimeout: 300_000 },
    }),
    { logger: pino({ level: 'silent' }) },
  );
  try {
    await untilActive(refold, held.id);
    await refold.log.append({ family: account, streamId: a, events: [deposited(100)] });
    const mutation = `mutation ($input: MoveInput!) {
      move(input: $input) { position streamId streamVersion held { accountId amount } query { b: held(accountId: "${b}") { amount } } }
    }`;
    const send = async (amount: number) => {
      const { data, errors } = await refold.graphql(mutation, { input: { from: a, to: b, amount } });
      return { move: (data as { move: Record<string, unknown> | null }).move, errors }; // as selected
    };
    const { move: moved } = await send(4);
    expect(moved).toMatchObject({
      streamId: a,
      streamVersion: 2,
      held: { accountId: a, amount: 96 },
      query: { b: { amount: 4 } },
    });
    expect(moved?.position).toMatch(/^\d+\./);
    expect((await send(77)).errors).toHaveLength(1);
    expect([await amountOf(a), await amountOf(b)]).toEqual([96, 4]);
  } finally {
    await refold.stop();
  }
});
