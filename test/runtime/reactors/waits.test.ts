import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { EventPace } from '../../../src/events/event-pace.ts';
import {
  beginning,
  defineCommand,
  defineConfig,
  defineEvents,
  defineReactor,
  type EventFamily,
  globalPosition,
  type Reactor,
  type ReactorContext,
  type ReactorErrorPolicy,
  type RecordedEvent,
  type RecordedEventOf,
  RefoldError,
} from '../../../src/index.ts';
import { begunReactor } from '../../../src/reactors/begun-reactor.ts';
import { versionedReactors } from '../../../src/reactors/versioned-reactor.ts';
import { createReactorProcessor } from '../../../src/runtime/reactors/reactor-processor.ts';
import { WaitingEvents } from '../../../src/runtime/reactors/waiting-events.ts';
import { type Runtime, startRuntime } from '../../../src/runtime/runtime.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { effort } from '../../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses } from '../../support/worker-processes.ts';
import { order } from './waiting-order.ts';

let database: TestDatabase;
let db: Database;
const running = new Set<Runtime>();
const workers = createWorkerProcesses('runtime/reactors/waiting-process.ts');
const step = { actor: 'ann', reason: 'by the way' };

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  await workers.killAll();
  for (const runtime of running) await runtime.stop();
  running.clear();
  await db.close();
  await database.drop();
});

async function start(reactors: readonly Reactor[], { maintain = true, events = [order] as EventFamily[] } = {}) {
  const runtime = await startRuntime({
    config: defineConfig({ events, reactors, runtime: { polling: { min: 10, max: 50 } } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain,
    logger: pino({ level: process.env.LOG ?? 'silent' }),
  });
  running.add(runtime);
  return runtime;
}

async function stop(runtime: Runtime): Promise<void> {
  running.delete(runtime);
  await runtime.stop();
}

type Awaited = RecordedEventOf<typeof order, 'Paid' | 'Noted'>;
type Handle = (event: RecordedEvent, context: ReactorContext<Awaited>) => Promise<unknown>;

/** A reactor that handles placed orders, and waits for what concerns them. */
function onPlaced(handle: Handle, onError: ReactorErrorPolicy | 'stop' = 'stop', concurrency = 4): Reactor {
  return defineReactor({
    name: 'orders',
    events: order,
    from: 'beginning',
    waitsFor: { Paid: ({ payload }) => payload.order, Noted: ({ payload }) => payload.order },
    handle: { Placed: async (event, context) => (await handle(event, context)) as 'ack' | undefined },
    onError,
    concurrency,
  });
}

const placed = { type: 'Placed', payload: {} } as const;
const noted = (id: string) => ({ type: 'Noted', payload: { order: id, text: 'x' } }) as const;
const paid = (id: string, amount = 1) => ({ type: 'Paid', payload: { order: id, amount } }) as const;

const append = (
  { log }: Runtime,
  streamId: string,
  ...events: ReturnType<typeof paid | typeof noted>[] | [typeof placed]
) => log.append({ family: order, streamId, events });

const status = async (runtime: Runtime) => (await runtime.reactors.status())[0];

async function settled(runtime: Runtime): Promise<void> {
  const head = await runtime.log.head();
  await until(async () => ((await status(runtime))?.position ?? -1n) >= head);
}

/** Resolves when nothing waits any more, and the reactor is at the head. */
async function finished(runtime: Runtime): Promise<void> {
  await settled(runtime);
  await until(async () => (await status(runtime))?.waiting === 0);
}

const hour = 3_600_000;
const amountOf = (event: Awaited | undefined) => (event?.type === 'Paid' ? event.payload.amount : event?.type);

/** Moves the due times of all waits, as if time had passed. */
const passTime = (milliseconds: number) =>
  db.query({
    text: `update refold.reactor_instances set due = due - make_interval(secs => $1)`,
    values: [milliseconds / 1000],
  });

test('a handler waits without holding anything, and continues with the event or after the timeout', async () => {
  const said: string[] = [];
  const reactor = onPlaced(async ({ streamId }, { wait, attempt }) => {
    const event = await wait.for('Paid', { key: streamId, timeout: streamId === 'late' ? 1 : hour });
    said.push(`${streamId} ${amountOf(event)} #${attempt}`);
  });
  const runtime = await start([reactor], {});
  await append(runtime, 'a', placed);
  await append(runtime, 'late', placed);
  await until(() => said.length === 1);
  await settled(runtime);
  expect(said).toEqual(['late undefined #1']);
  expect(await status(runtime)).toMatchObject({ handled: 1n, waiting: 1, lag: 0n, nextDue: expect.any(String) });
  const [waiting] = await runtime.reactors.waiting('orders');
  expect(waiting).toMatchObject({
    ...{ position: 1n, type: 'Placed', streamId: 'a', step: 'wait:Paid', awaits: ['Paid'], awaitedKey: 'a' },
    isWoken: false,
  });
  await append(runtime, 'p', paid('b', 7), paid('a', 8));
  await finished(runtime);
  expect(said).toEqual(['late undefined #1', 'a 8 #1']);
  expect(await status(runtime)).toMatchObject({ handled: 2n, waiting: 0, nextDue: null });
});

test('an event before the wait counts, two waits get two events in order, and one for several types the first of them', async () => {
  const said: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  const reactor = onPlaced(async ({ streamId: key }, { wait }) => {
    await gate.promise;
    const first = await wait.for('Paid', { key, step: 'first' });
    const second = await wait.for('Paid', { key, step: 'second', timeout: hour });
    const third = await wait.for(['Noted', 'Paid'], { key });
    const fourth = await wait.for(['Noted', 'Paid'], { key, step: 'fourth' });
    said.push([first, second, third, fourth].map(amountOf));
  });
  const runtime = await start([reactor]);
  await append(runtime, 'p', paid('a', 0));
  await append(runtime, 'a', placed);
  await append(runtime, 'p', paid('b', 9), paid('a', 1), noted('a'), paid('a', 2), paid('a', 3));
  gate.resolve();
  await finished(runtime);
  expect(said).toEqual([[1, 2, 'Noted', 3]]);
});

test('an event that was recorded in time wins, though the reactor reads it after the timeout; a later one does not', async () => {
  const said: unknown[] = [];
  const reactor = onPlaced(async ({ streamId: key }, { wait }) => {
    said.push([key, amountOf(await wait.for('Paid', { key, timeout: hour }))]);
  });
  const first = await start([reactor]);
  await append(first, 'a', placed);
  await append(first, 'b', placed);
  await settled(first);
  await first.reactors.pause('orders', step);
  await until(async () => (await status(first))?.owner === null);
  await append(first, 'p', paid('a'));
  // The timeouts are over between the two payments.
  await db.query({ text: 'update refold.reactor_instances set due = clock_timestamp()' });
  await append(first, 'p', paid('b'));
  expect(said).toEqual([]);
  await first.reactors.resume('orders', step);
  await finished(first);
  expect(said.toSorted()).toEqual([
    ['a', 1],
    ['b', undefined],
  ]);
});

test('an append that was under way when the timeout was over decides', async () => {
  const said: unknown[] = [];
  const reactor = onPlaced(async ({ streamId: key }, { wait }) => {
    said.push(amountOf(await wait.for('Paid', { key, timeout: hour })));
  });
  const runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await settled(runtime);
  await db.transaction(async (tx) => {
    await runtime.log.append({ family: order, streamId: 'p', events: [paid('a')] }, tx);
    await db.query({ text: 'update refold.reactor_instances set due = clock_timestamp()' });
    await runtime.reactors.pause('orders', step);
    await runtime.reactors.resume('orders', step);
    await until(async () => (await status(runtime))?.state === 'running');
    // It has looked for writers under way, and found this one.
    await until(async () => {
      const text =
        "select from pg_stat_activity where query like '%from refold.tags where tag <=%' and pid <> pg_backend_pid()";
      return (await db.query({ text })).length > 0;
    });
    expect(said).toEqual([]);
  });
  await finished(runtime);
  expect(said).toEqual([1]);
});

test('a wait for a time is over then, also after a restart, and at once if the time has passed', async () => {
  const said: string[] = [];
  const reactor = onPlaced(async ({ streamId, recordedAt }, { wait }) => {
    await wait.until('2020-02-29');
    await wait.until(new Date(Date.parse(recordedAt) + 24 * hour), { step: 'tomorrow' });
    said.push(streamId);
  });
  let runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await settled(runtime);
  expect((await runtime.reactors.waiting('orders')).map((one) => [one.step, one.awaits])).toEqual([['tomorrow', []]]);
  await stop(runtime);
  await passTime(24 * hour);
  runtime = await start([reactor]);
  await finished(runtime);
  expect(said).toEqual(['a']);
});

test('a reactor that is paused wakes nothing', async () => {
  const said: string[] = [];
  const reactor = onPlaced(async ({ streamId: key }, { wait }) => {
    await wait.for('Paid', { key, timeout: hour });
    said.push(key);
  });
  const runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await append(runtime, 'b', placed);
  await settled(runtime);
  await runtime.reactors.pause('orders', step);
  await until(async () => (await status(runtime))?.owner === null);
  await passTime(hour);
  await append(runtime, 'p', paid('b'));
  expect(said).toEqual([]);
  await runtime.reactors.resume('orders', step);
  await finished(runtime);
  expect(said.toSorted()).toEqual(['a', 'b']);
});

test('1,100 handlers that wait stop neither the reactor nor later events of their key', async () => {
  const count = 1100; // more than the events that a reactor handles at once
  const said: string[] = [];
  const reactor = onPlaced(
    async ({ streamId, streamPosition }, { wait }) => {
      if (streamPosition > 1) return said.push(`${streamId} goes on`);
      await wait.for('Paid', { key: streamId.endsWith('7') ? 'seven' : streamId });
      return said.push(streamId);
    },
    'stop',
    20,
  );
  const runtime = await start([reactor]);
  const streams = Array.from({ length: count }, (_, index) => ({
    family: order,
    streamId: `o${index}`,
    events: [placed],
  }));
  await runtime.log.appendToStreams({ streams });
  await append(runtime, 'o0', placed);
  await settled(runtime);
  expect(said).toEqual(['o0 goes on']);
  expect(await status(runtime)).toMatchObject({ waiting: count, lag: 0n });
  await append(runtime, 'p', paid('seven'), paid('o0'));
  await until(async () => (await status(runtime))?.waiting === count - 111);
  expect(new Set(said).size).toBe(112);
  expect(said.length).toBe(112);
});

const pay = defineCommand({
  name: 'pay',
  input: z.object({ order: z.string(), amount: z.number() }),
  events: order,
  stream: ({ order: id }) => `paid ${id}`,
  decide: ({ order: id, amount }) =>
    ({ type: 'Noted', payload: { order: `${id} done`, text: String(amount) } }) as const,
});

test('a woken handler keeps its outcomes through failures, dead letters, retries and a rewind', async () => {
  const said: string[] = [];
  let isBroken = true;
  const reactor = onPlaced(
    async ({ streamId: key }, { wait, execute, attempt }) => {
      await execute(pay, { order: key, amount: 1 }, { step: 'before' });
      const event = await wait.for('Paid', { key, timeout: hour });
      said.push(`${amountOf(event)} #${attempt}`);
      await execute(pay, { order: key, amount: 2 }, { step: 'after' });
      if (isBroken) throw new Error('broken');
      await wait.for('Noted', { key });
    },
    { policy: 'dead-letter', retries: [{ times: 1, first: 1 }] },
  );
  const runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await settled(runtime);
  await append(runtime, 'p', paid('a', 5));
  await until(async () => (await status(runtime))?.deadLetters === 1);
  expect(said).toEqual(['5 #1', '5 #2']);
  // Later events of the key wait behind it.
  await append(runtime, 'a', placed);
  await until(async () => (await status(runtime))?.deadLetters === 2);
  isBroken = false;
  await runtime.reactors.redeliver('orders', 'retry', step);
  await until(async () => (await status(runtime))?.deadLetters === 0);
  expect(await status(runtime)).toMatchObject({ waiting: 2, handled: 0n });
  expect(said).toEqual(['5 #1', '5 #2', '5 #3']);
  await append(runtime, 'p', noted('a'), paid('a', 6));
  await until(async () => said.length === 5);
  await append(runtime, 'p', noted('a'));
  await finished(runtime);
  expect(
    said
      .slice(3)
      .map((one) => one[0])
      .toSorted(),
  ).toEqual(['5', '6']);
  await runtime.reactors.rewind('orders', globalPosition(0n), step);
  await finished(runtime);
  await until(async () => (await status(runtime))?.handled === 4n);
  const written: unknown[] = [];
  for await (const { payload } of runtime.log.readStream(order, 'paid a')) written.push(payload);
  expect(written).toHaveLength(4); // two of each placed order
});

test('an event that waits is cancelled by an operator, skipped over, and forgotten with its reactor', async () => {
  const said: string[] = [];
  const reactor = onPlaced(
    async ({ streamId: key }, { wait }) => {
      await wait.for('Paid', { key });
      if (key === 'bad') throw new Error('bad luck');
      said.push(key);
    },
    { policy: 'stop', retries: [] },
  );
  const runtime = await start([reactor]);
  await append(runtime, 'bad', placed);
  await append(runtime, 'good', placed);
  await settled(runtime);
  await append(runtime, 'p', paid('bad'), paid('good'));
  await until(async () => (await status(runtime))?.state === 'stopped');
  expect((await status(runtime))?.error?.message).toContain("handling 'Placed' at position 1 (stream 'bad'");
  await runtime.reactors.cancel('orders', globalPosition(1n), step);
  await finished(runtime);
  expect(said).toEqual(['good']);
  await expect(runtime.reactors.cancel('orders', globalPosition(1n), step)).rejects.toThrow(
    'orders has no event at position 1 whose handler waits.',
  );
  expect((await runtime.reactors.history('orders'))[0]).toMatchObject({ operation: 'cancelled', to: 1n, actor: 'ann' });

  // Skipped: a wait that begins later still finds an awaited event of the skipped range.
  await append(runtime, 'x', placed);
  await settled(runtime);
  await runtime.reactors.pause('orders', step);
  await until(async () => (await status(runtime))?.owner === null);
  await append(runtime, 'p', paid('x'));
  await append(runtime, 'y', placed);
  await runtime.reactors.skipAhead('orders', globalPosition(await runtime.log.head()), step);
  await runtime.reactors.resume('orders', step);
  await finished(runtime);
  expect(said).toEqual(['good', 'x']);
  await append(runtime, 'z', placed);
  await settled(runtime);
  await stop(runtime);
  const operator = await start([], { maintain: false });
  await operator.reactors.forget('orders', step);
  expect(await db.query({ text: 'select from refold.reactor_instances' })).toEqual([]);
  expect(await db.query({ text: 'select from refold.awaited_events' })).toEqual([]);
});

test('mistakes are named, fail the attempt and are not retried', async () => {
  const mistakes: Record<string, Handle> = {
    undeclared: (_, { wait }) => wait.for('Placed' as 'Paid', { key: 'a' }),
    key: (_, { wait }) => wait.for('Paid', { key: 7 as never }),
    timeout: (_, { wait }) => wait.for('Paid', { key: 'a', timeout: Number.NaN }),
    time: (_, { wait }) => wait.until('tomorrow'),
    local: (_, { wait }) => wait.until('2026-01-01T10:00:00'),
    atOnce: async (_, { wait }) => Promise.all([wait.until('2020-01-01'), wait.for('Paid', { key: 'a' })]),
    twice: async (_, { wait }) => {
      await wait.until('2020-01-01');
      await wait.until('2020-01-02').catch(() => {});
    },
    changed: async ({ streamId }, { wait, attempt }) => {
      await wait.until(attempt === 1 ? '2020-01-01' : '2020-01-02');
      throw new Error(`again ${streamId}`);
    },
  };
  const reactor = onPlaced(async (event, context) => mistakes[event.streamId]?.(event, context), {
    policy: 'dead-letter',
    retries: [{ times: 1, first: 1 }],
  });
  const runtime = await start([reactor]);
  for (const streamId of Object.keys(mistakes)) await append(runtime, streamId, placed);
  await settled(runtime);
  const letters = await runtime.reactors.deadLetters('orders');
  const found = Object.fromEntries(
    letters.map(({ streamId, error, attempts }) => [streamId, [attempts, error?.message]]),
  );
  const says = (words: string, attempts = 1) => [attempts, expect.stringContaining(words)];
  expect(found).toEqual({
    undeclared: says(
      "'waitsFor' of the reactor does not name 'Placed'. Add it there, with a function that returns its key.",
    ),
    key: says("'wait.for' needs the key of the event as a text; found 7."),
    timeout: says("'timeout' is a number of milliseconds from 0 to 1000000000000; found NaN."),
    time: says("'wait.until' needs a time: a valid Date, or an ISO 8601 date or time with its offset; found tomorrow."),
    local: says("'wait.until' needs a time"),
    atOnce: says('it begins a wait while another one is under way. Await each wait before the next.'),
    twice: says("two steps are named 'wait:until'. Give each step a name of its own."),
    changed: says("step 'wait:until' of 'Placed' at position 8", 2),
  });
});

test('an awaited event whose key can not be computed goes the way of onError, and counts once it can be', async () => {
  let isBroken = true;
  const said: unknown[] = [];
  const reactor = defineReactor({
    name: 'orders',
    events: order,
    from: 'beginning',
    waitsFor: {
      Paid({ payload }) {
        if (isBroken && payload.amount === 13) throw new Error('13 is bad luck');
        return payload.order;
      },
    },
    handle: {
      async Placed({ streamId: key }, { wait }) {
        const { payload } = await wait.for('Paid', { key });
        said.push([key, payload.amount]);
      },
    },
    onError: { policy: 'dead-letter', retries: [] },
  });
  const runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await append(runtime, 'b', placed);
  await append(runtime, 'p', paid('a', 13), paid('b', 1));
  await settled(runtime);
  await until(() => said.length === 1);
  expect((await runtime.reactors.deadLetters('orders')).map(({ error }) => error?.message)).toEqual([
    expect.stringContaining("handling 'Paid' at position 3 (stream 'p'"),
  ]);
  isBroken = false;
  await runtime.reactors.redeliver('orders', 'retry', step);
  await until(async () => (await status(runtime))?.deadLetters === 0);
  await finished(runtime);
  expect(said).toEqual([
    ['b', 1],
    ['a', 13],
  ]);
});

test('types that a deployment adds are found back to the oldest waiting event, and waits for types that it removes wait on', async () => {
  const said: unknown[] = [];
  const handle: Handle = async ({ streamId: key }, { wait }) => {
    await wait.until('2020-01-01');
    said.push([key, amountOf(await wait.for(['Paid', 'Noted'], { key, timeout: hour }))]);
  };
  const without = defineReactor({
    name: 'orders',
    events: order,
    from: 'beginning',
    waitsFor: { Noted: ({ payload }) => payload.order },
    handle: {
      Placed: async ({ streamId }, { wait }) =>
        streamId === 'first' ? void (await wait.for('Noted', { key: streamId })) : undefined,
    },
  });
  let runtime = await start([onPlaced(handle)]);
  await append(runtime, 'a', placed);
  await settled(runtime);
  await stop(runtime);
  runtime = await start([without]);
  await append(runtime, 'p', paid('a', 3));
  await settled(runtime);
  await passTime(hour);
  await append(runtime, 'p', paid('other'));
  await settled(runtime);
  expect(said).toEqual([]); // this process does not know payments, so it does not decide that there is none
  await stop(runtime);
  await db.query({ text: `update refold.reactor_instances set due = clock_timestamp() + interval '1 hour'` });
  runtime = await start([onPlaced(handle)]);
  await finished(runtime);
  expect(said).toEqual([['a', 3]]);
});

test('a wait survives that its event type is renamed', async () => {
  const said: unknown[] = [];
  const before = await start([onPlaced(async ({ streamId: key }, { wait }) => void (await wait.for('Paid', { key })))]);
  await append(before, 'a', placed);
  await append(before, 'b', placed);
  await settled(before);
  await append(before, 'p', paid('b', 1));
  await until(async () => (await status(before))?.waiting === 1);
  await stop(before);
  const { Paid, ...schemas } = order.schemas;
  const renamed = defineEvents('order', { ...schemas, Settled: Paid }, { types: { Settled: { was: ['Paid'] } } });
  const reactor = defineReactor({
    name: 'orders',
    events: renamed,
    waitsFor: { Settled: ({ payload }) => payload.order },
    handle: {
      async Placed({ streamId: key }, { wait }) {
        const { type, payload } = await wait.for('Settled', { key });
        said.push([key, type, payload.amount]);
      },
    },
  });
  const after = await start([reactor], { events: [renamed] });
  const event = { type: 'Settled', payload: { order: 'a', amount: 2 } } as const;
  await after.log.append({ family: renamed, streamId: 'p', events: [event] });
  await finished(after);
  await after.reactors.rewind('orders', globalPosition(0n), step);
  await finished(after);
  await until(() => said.length === 3);
  expect(said.toSorted()).toEqual([
    ['a', 'Settled', 2],
    ['a', 'Settled', 2],
    ['b', 'Settled', 1],
  ]);
});

test('an awaited event that a restored log does not hold decides nothing, and an outcome that rests on one fails', async () => {
  const said: unknown[] = [];
  const reactor = onPlaced(
    async ({ streamId: key }, { wait }) => {
      said.push([key, amountOf(await wait.for('Paid', { key }))]);
      if (key === 'a') throw new Error('not yet');
    },
    { policy: 'dead-letter', retries: [] },
  );
  let runtime = await start([reactor]);
  await append(runtime, 'a', placed);
  await append(runtime, 'b', placed);
  await append(runtime, 'p', paid('a', 1), paid('b', 2));
  await until(() => said.length === 2);
  await until(async () => (await status(runtime))?.deadLetters === 1);
  await finished(runtime);
  await stop(runtime);
  // Other events are at the positions of both payments. The second one's instance is as it was before.
  await database.administer(`
    set session_replication_role = 'replica';
    update refold.events set id = gen_random_uuid() where position in (3, 4);
    update refold.reactors set anchor = null`);
  runtime = await start([reactor]);
  await append(runtime, 'c', placed);
  await settled(runtime);
  await runtime.reactors.redeliver('orders', 'retry', step);
  await until(async () => (await runtime.reactors.deadLetters('orders')).every(({ requested }) => requested === null));
  const [letter] = await runtime.reactors.deadLetters('orders');
  expect(letter?.error?.message).toContain(
    'had returned the event at position 3, which the log does not hold any more',
  );
  expect(said).toHaveLength(2);
});

function begun(declared: Reactor) {
  const [versions] = versionedReactors([declared]);
  return begunReactor(versions ?? expect.unreachable(), [{ version: 1, after: beginning }]);
}

test('a process that ends between any two statements loses no wait, no outcome and no event', async () => {
  const said: string[] = [];
  const declared = onPlaced(async ({ streamId: key }, { wait, execute }) => {
    await execute(pay, { order: key, amount: 1 }, { step: 'before' });
    said.push(`${key} ${amountOf(await wait.for('Paid', { key, timeout: hour }))}`);
    await wait.until('2020-01-01');
    await execute(pay, { order: key, amount: 2 }, { step: 'after' });
  });
  const { log } = await start([declared], { maintain: false });
  const reactor = begun(declared);
  const logger = pino({ level: 'silent' });
  const isPaid = new Set<string>();
  const rowsOf = (table: string, key: string) =>
    db.query({ text: `select from ${table} where key = $1`, values: [`order/${key}`] });

  /** Handles the order of this key in a process of its own, until the order is done or the process ends. */
  async function own(through: Database, key: string, isEnded: () => boolean): Promise<void> {
    const claim = await claimProcessor(db, { kind: 'reactor', name: 'orders', version: 0, partition: 0 }, 'test');
    const options = {
      db: through,
      log,
      reactor,
      claim,
      processId: randomUUID(),
      grace: 0,
      pace: new EventPace(),
      logger,
    };
    const processor = await createReactorProcessor(options).catch(() => undefined);
    let after = claim.checkpoint;
    await until(async () => {
      if (!processor || isEnded()) return true;
      const horizon = await log.horizon();
      const page = await log.readAll({ after, upTo: horizon, filter: reactor.filter, limit: 100 });
      await processor.process({ after, horizon, ...page });
      after = page.upTo;
      if (!isPaid.has(key) && (await rowsOf('refold.reactor_instances', key)).length > 0) {
        isPaid.add(key);
        await log.append({ family: order, streamId: 'p', events: [paid(key, 7)] });
      }
      return isDone(key);
    });
    await processor?.interrupt?.(new Error('the process is gone'));
  }
  const isDone = async (key: string) =>
    (await log.streamVersion(order, `paid ${key}`)) === 2 &&
    (await rowsOf('refold.reactor_instances', key)).length === 0;

  for (let survived = 0; ; survived++) {
    const key = `o${survived}`;
    await log.append({ family: order, streamId: key, events: [placed] });
    let statements = 0;
    const dying: Database = {
      ...db,
      async query(statement) {
        if (statements > survived) throw new RefoldError('DATABASE_UNAVAILABLE', 'the process is gone');
        const rows = await db.query(statement);
        if (++statements > survived) throw new RefoldError('DATABASE_UNAVAILABLE', 'the process is gone');
        return rows as never;
      },
    };
    const isEnded = () => statements > survived;
    await own(dying, key, isEnded);
    const hasEnded = isEnded();
    if (!(await isDone(key))) await own(db, key, () => false);
    expect(await isDone(key)).toBe(true);
    if (!hasEnded) break;
  }
  expect(new Set(said.map((one) => one.split(' ')[1]))).toEqual(new Set(['7']));
});

test('a reactor without waits costs one statement when it is claimed, and none for an event', async () => {
  const declared = defineReactor({ name: 'orders', events: order, handle: { Placed: async () => 'ack' } });
  const runtime = await start([declared], { maintain: false });
  await append(runtime, 'a', placed);
  const claim = await claimProcessor(db, { kind: 'reactor', name: 'orders', version: 0, partition: 0 }, 'test');
  let statements = 0;
  const counting: Database = {
    ...db,
    query(statement) {
      statements++;
      return db.query(statement);
    },
  };
  const logger = pino({ level: 'silent' });
  const reactor = begun(declared);
  const waiting = await WaitingEvents.open({ db: counting, log: runtime.log, reactor, claim, logger });
  const event = await runtime.log.readAt(globalPosition(1n));
  await waiting.read(event ? [event] : [], globalPosition(1n));
  await waiting.close();
  expect(statements).toBe(1);
});

test('a wait survives the kill of its process, in every state', async () => {
  const runtime = await start([], { maintain: false });
  const first = await workers.start({ url: database.url, owner: 'first' });
  for (let index = 0; index < 20; index++) await append(runtime, `o${index}`, placed);
  await until(async () => ((await status(runtime))?.waiting ?? 0) > 3);
  await first.end('SIGKILL');
  const second = await workers.start({ url: database.url, owner: 'second' });
  for (let index = 0; index < 10; index++) await append(runtime, 'p', paid(`o${index}`));
  await settled(runtime);
  await until(async () => ((await status(runtime))?.handled ?? 0n) > 1n);
  await second.end('SIGKILL');
  // Those that are not paid are over while no process runs.
  await passTime(2 * hour);
  const third = await workers.start({ url: database.url, owner: 'third' });
  await finished(runtime);
  await third.end('SIGTERM');
  for (let index = 0; index < 20; index++) {
    const outcomes: unknown[] = [];
    for await (const { payload } of runtime.log.readStream(order, `outcome of o${index}`)) outcomes.push(payload);
    expect(outcomes).toEqual([{ order: '-', text: index < 10 ? 'paid' : 'expired' }]);
  }
}, 900_000); // processes, one after another, on a machine that may be busy

type Action =
  | { readonly kind: 'place' | 'pay' | 'note'; readonly order: string }
  | { readonly kind: 'time' | 'restart' | 'rewind' | 'retry' };

test('any interleaving of events, time, owners and failures leads to the outcomes of a simple model', async () => {
  const orders = ['a', 'b', 'c'];
  const action: fc.Arbitrary<Action> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constantFrom('place', 'pay', 'note'), order: fc.constantFrom(...orders) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('time', 'restart', 'rewind', 'retry') }) },
  );
  const scenario = fc.array(action, { minLength: 3, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(scenario, fc.integer({ min: 0, max: 3 }), async (actions, failures) => {
      const own = await createTestDatabase();
      const shared = { database, db };
      database = own;
      db = createDatabase({ url: own.url });
      try {
        await compareWithModel(actions, failures);
      } finally {
        for (const runtime of running) await stop(runtime);
        await db.close();
        await own.drop();
        ({ database, db } = shared);
      }
    }),
    { numRuns: effort(8, 3) },
  );
});

// The reactor decides these when it has looked for writers under way, which may be after it has read the log.
const overdue = 'select from refold.reactor_instances where not woken and due <= clock_timestamp()';

async function compareWithModel(actions: readonly Action[], failures: number): Promise<void> {
  const said = new Map<bigint, string>();
  const tries = new Map<string, number>();
  // Each placed order: a payment within two hours, then a note or the next payment, without end.
  const reactor = onPlaced(
    async ({ streamId: key, position }, { wait }) => {
      const fail = (at: string) => {
        const tried = (tries.get(`${position} ${at}`) ?? 0) + 1;
        tries.set(`${position} ${at}`, tried);
        if (tried <= (Number(position) + failures) % 4) throw new Error('not yet');
      };
      fail('before');
      const payment = await wait.for('Paid', { key, timeout: 2 * hour });
      fail('between');
      if (!payment) return said.set(position, 'expired');
      const next = await wait.for(['Noted', 'Paid'], { key });
      fail('after');
      return said.set(position, `${payment.position} ${next.position}`);
    },
    { policy: 'dead-letter', retries: [{ times: 1, first: 1, maxPause: 1 }] },
  );
  let runtime = await start([reactor]);
  const retryAll = async () => {
    while (((await status(runtime))?.deadLetters ?? 0) > 0) {
      await runtime.reactors.redeliver('orders', 'retry', step).catch(() => 0);
      await until(async () =>
        (await runtime.reactors.deadLetters('orders')).every(({ requested }) => requested === null),
      );
    }
  };
  /** Everything that can happen has happened. */
  const quiet = async () => {
    await settled(runtime);
    await until(async () => (await db.query({ text: overdue })).length === 0);
    await until(async () => (await runtime.reactors.waiting('orders')).every(({ isWoken }) => !isWoken));
  };
  interface Modelled {
    readonly position: bigint;
    readonly order: string;
    /** In hours of the model's clock. */
    due: number;
    paid: bigint | undefined;
    events: bigint[];
  }
  const model: Modelled[] = [];
  const isExpired = ({ due, paid }: Modelled) => due <= now && paid === undefined;
  let now = 0;
  for (const one of actions) {
    switch (one.kind) {
      case 'place': {
        const { position } = await append(runtime, one.order, placed);
        // The wait begins before time passes.
        await settled(runtime);
        await retryAll();
        model.push({ position, order: one.order, due: now + 2, paid: undefined, events: [] });
        break;
      }
      case 'pay':
      case 'note': {
        const { position } = await append(runtime, 'p', one.kind === 'pay' ? paid(one.order) : noted(one.order));
        for (const each of model) {
          if (each.order !== one.order) continue;
          each.events.push(position);
          if (one.kind === 'pay' && !isExpired(each)) each.paid ??= position;
        }
        break;
      }
      case 'time':
        await quiet();
        now++;
        await passTime(hour);
        // The owner learns of the new due times from the next look.
        await stop(runtime);
        runtime = await start([reactor]);
        await quiet();
        break;
      case 'restart':
        await stop(runtime);
        runtime = await start([reactor]);
        break;
      case 'rewind':
        await settled(runtime);
        if (((await status(runtime))?.position ?? 0n) > 0n)
          await runtime.reactors.rewind('orders', globalPosition(0n), step);
        break;
      case 'retry':
        await settled(runtime);
        await retryAll();
    }
  }
  await quiet();
  await retryAll();
  await quiet();
  await retryAll();
  const expected = model.flatMap((one): [bigint, string][] => {
    const { position, paid: payment, events } = one;
    if (isExpired(one)) return [[position, 'expired']];
    // A note that came before the payment counts for the second wait.
    const next = events.find((event) => event !== payment);
    return payment === undefined || next === undefined ? [] : [[position, `${payment} ${next}`]];
  });
  expect([...said].toSorted(([a], [b]) => Number(a - b))).toEqual(expected);
  expect((await status(runtime))?.waiting).toBe(model.length - expected.length);
}
