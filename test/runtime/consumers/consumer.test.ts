import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type GlobalPosition, globalPosition, type RecordedEvent } from '../../../src/index.ts';
import { createConsumer } from '../../../src/runtime/consumers/consumer.ts';
import type { EventPage, EventSource, Processor } from '../../../src/runtime/consumers/event-source.ts';
import { createSignal } from '../../../src/runtime/scheduling/signal.ts';
import { until } from '../../support/until.ts';

function event(position: number, type: string): RecordedEvent {
  return {
    id: `event-${position}`,
    family: 'thing',
    streamId: 'a',
    streamPosition: position,
    position: globalPosition(BigInt(position)),
    type,
    payload: {},
    payloadVersion: 1,
    metadata: {},
    recordedAt: '2026-01-01T00:00:00.000Z',
  };
}

/** An array as a source of events. More can be added while it is read. */
function arraySource(initial: readonly RecordedEvent[]) {
  const events = [...initial];
  const grown = createSignal();
  const reads: { after: GlobalPosition; limit: number }[] = [];
  const source: EventSource = {
    async read(after, filter, limit) {
      reads.push({ after, limit });
      const horizon = globalPosition(BigInt(events.length));
      const wanted = events.filter(
        ({ position, type, family }) =>
          position > after && filter.some((one) => one.family === family && one.types.includes(type)),
      );
      const page = wanted.slice(0, limit);
      const last = page.at(-1);
      return {
        after,
        events: page,
        horizon,
        upTo: page.length === limit && last ? last.position : horizon > after ? horizon : after,
      };
    },
    async wait(after, signal) {
      if (BigInt(events.length) > after || signal.aborted) return;
      await Promise.race([
        grown.next(),
        new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
      ]);
    },
  };
  return {
    source,
    reads,
    append(...types: string[]) {
      for (const type of types) events.push(event(events.length + 1, type));
      grown.fire();
    },
  };
}

/** A processor that records what it receives. */
function recorder(
  id: string,
  types: readonly string[],
  checkpoint = 0,
  onPage: (page: EventPage) => Promise<void> = async () => {},
) {
  const got: number[] = [];
  let reached = BigInt(checkpoint);
  const processor: Processor = {
    id,
    filter: [{ family: 'thing', types }],
    checkpoint: globalPosition(BigInt(checkpoint)),
    async process(page) {
      await onPage(page);
      expect(page.after).toBe(reached);
      for (const { position } of page.events) got.push(Number(position));
      reached = page.upTo;
      return 'continue';
    },
  };
  return { processor, got, reached: () => reached };
}

const types = ['A', 'B', 'C'];

test('each processor receives each of its events once and in order, for any page sizes, paces and starting points', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        before: fc.array(fc.constantFrom(...types), { maxLength: 60 }),
        after: fc.array(fc.array(fc.constantFrom(...types), { maxLength: 10 }), { maxLength: 6 }),
        pageSize: fc.integer({ min: 1, max: 20 }),
        bufferedPages: fc.integer({ min: 1, max: 3 }),
        processors: fc.array(
          fc.record({
            types: fc.uniqueArray(fc.constantFrom(...types), { minLength: 1 }),
            start: fc.double({ min: 0, max: 1, noNaN: true }),
            turns: fc.integer({ min: 0, max: 5 }),
            late: fc.boolean(),
          }),
          { minLength: 1, maxLength: 5 },
        ),
      }),
      async ({ before, after, pageSize, bufferedPages, processors }) => {
        const { source, append } = arraySource(before.map((type, index) => event(index + 1, type)));
        const consumer = createConsumer({ source, pageSize, bufferedPages });
        const recorders = processors.map(({ types: wanted, start, turns }, index) =>
          recorder(`p${index}`, wanted, Math.floor(start * before.length), async () => {
            for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
          }),
        );
        const early = recorders.filter((_, index) => !processors[index]?.late);
        const late = recorders.filter((_, index) => processors[index]?.late);
        consumer.add(early.map(({ processor }) => processor));
        for (const more of after) {
          append(...more);
          await new Promise((resolve) => setImmediate(resolve));
        }
        consumer.add(late.map(({ processor }) => processor));
        const all = [...before, ...after.flat()];
        await until(() => recorders.every(({ reached }) => reached() === BigInt(all.length)));
        await consumer.stop();
        for (const [index, { got, processor }] of recorders.entries()) {
          const expected = all.flatMap((type, at) =>
            at + 1 > Number(processor.checkpoint) && processors[index]?.types.includes(type) ? [at + 1] : [],
          );
          expect(got).toEqual(expected);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('a slow processor delays no other: another one is at the head before it has finished its first page', async () => {
  const { source } = arraySource(Array.from({ length: 1000 }, (_, index) => event(index + 1, 'A')));
  const consumer = createConsumer({ source, pageSize: 10, bufferedPages: 2 });
  const gate = Promise.withResolvers<void>();
  const slow = recorder('slow', ['A'], 0, () => gate.promise);
  const fast = recorder('fast', ['A']);
  consumer.add([slow.processor, fast.processor]);
  await until(() => fast.reached() === 1000n);
  expect(slow.got).toEqual([]);
  gate.resolve();
  await until(() => slow.reached() === 1000n);
  expect(slow.got).toEqual(fast.got);
  await consumer.stop();
});

test('reading pauses while the only processor is busy, which bounds the waiting events', async () => {
  const { source, reads } = arraySource(Array.from({ length: 1000 }, (_, index) => event(index + 1, 'A')));
  const consumer = createConsumer({ source, pageSize: 10, bufferedPages: 3 });
  const gate = Promise.withResolvers<void>();
  const busy = recorder('busy', ['A'], 0, () => gate.promise);
  consumer.add([busy.processor]);
  await until(() => reads.length >= 4);
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(reads.length).toBe(4); // three waiting pages, and one being processed
  gate.resolve();
  await until(() => busy.reached() === 1000n);
  await consumer.stop();
});

test('processors near each other share one reading of the log', async () => {
  const { source, reads } = arraySource(Array.from({ length: 100 }, (_, index) => event(index + 1, 'A')));
  const consumer = createConsumer({ source, pageSize: 10 });
  const recorders = [recorder('a', ['A']), recorder('b', ['A'], 5), recorder('c', ['A'], 20)];
  consumer.add(recorders.map(({ processor }) => processor));
  await until(() => recorders.every(({ reached }) => reached() === 100n));
  expect(new Set(reads.map(({ after }) => after)).size).toBe(reads.length);
  await consumer.stop();
});

test('a processor that fails stops alone, and its owner receives the error', async () => {
  const { source, append } = arraySource([event(1, 'A'), event(2, 'A')]);
  const consumer = createConsumer({ source, pageSize: 1 });
  const failing = recorder('failing', ['A'], 0, async (page) => {
    if (page.upTo >= 2n) throw new Error('no');
  });
  const healthy = recorder('healthy', ['A']);
  const [subscription] = consumer.add([failing.processor, healthy.processor]);
  await expect(subscription?.done).rejects.toThrow('no');
  append('A', 'A');
  await until(() => healthy.reached() === 4n);
  expect(failing.got).toEqual([1]);
  await consumer.stop();
});

test('a processor that asks to stop receives nothing more, and a removed one finishes its page first', async () => {
  const { source, append } = arraySource([event(1, 'A')]);
  const consumer = createConsumer({ source, pageSize: 1 });
  const gate = Promise.withResolvers<void>();
  const stopping: Processor = { ...recorder('stopping', ['A']).processor, process: async () => 'stop' };
  const leaving = recorder('leaving', ['A'], 0, () => gate.promise);
  const [stopped, left] = consumer.add([stopping, leaving.processor]);
  await stopped?.done;
  append('A');
  const removal = left?.remove();
  gate.resolve();
  await removal;
  await left?.done;
  expect(leaving.got).toEqual([1]);
  await consumer.stop();
});

test('events that arrive one by one while a processor is busy are processed together, at most a page of them', async () => {
  const log = arraySource([]);
  const sizes: number[] = [];
  const busy = createSignal();
  const one = recorder('one', types, 0, async ({ events }) => {
    sizes.push(events.length);
    if (sizes.length === 2) await busy.next(); // with the first event
  });
  const consumer = createConsumer({ source: log.source, pageSize: 5, bufferedPages: 4 });
  consumer.add([one.processor]);
  await until(() => sizes.length === 1);
  for (let position = 1; position <= 8; position++) {
    const before = log.reads.length;
    log.append('A');
    await until(() => log.reads.length > before);
  }
  busy.fire();
  await until(() => one.got.length === 8);
  await consumer.stop();
  expect(one.got).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(sizes).toEqual([0, 1, 5, 2]);
});
