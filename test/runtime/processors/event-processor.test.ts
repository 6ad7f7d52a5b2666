import { pino } from 'pino';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  createConsumer,
  defineConfig,
  defineEvents,
  type EventSource,
  eventProcessor,
  type GlobalPosition,
  globalPosition,
} from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { createInMemoryLog } from '../../../src/testing.ts';
import { createTestDatabase } from '../../support/test-database.ts';

const note = defineEvents('note', { Written: z.object({ text: z.string() }), Torn: z.object({}) });

async function notes(...texts: string[]) {
  const log = createInMemoryLog();
  const add = async (text: string) =>
    void (await log.append({ family: note, streamId: 'n', events: [{ type: 'Written', payload: { text } }] }));
  for (const text of texts) await add(text);
  return { source: log.source, add };
}

test('a handler receives its events once and in order, acknowledges, skips and stops; it never receives other events', async () => {
  const { source, add } = await notes('a', 'b');
  const got: string[] = [];
  const saved: GlobalPosition[] = [];
  const processor = eventProcessor({
    id: 'reader',
    events: note,
    types: ['Written'],
    async handle({ payload }) {
      got.push('text' in payload ? payload.text : '');
      if (got.length === 2) return 'skip';
      return got.length === 4 ? 'stop' : undefined;
    },
    saveCheckpoint: (position) => void saved.push(position),
  });
  const consumer = createConsumer({ source, pageSize: 2 });
  consumer.add([processor]);
  for (const text of ['c', 'd', 'e']) await add(text);
  await consumer.done;
  expect(got).toEqual(['a', 'b', 'c', 'd']);
  expect([processor.handled, processor.skipped, processor.position]).toEqual([3, 1, 4n]);
  expect(saved.at(-1)).toBe(4n);
});

test('a consumer is done when all its processors are over, and then reports the first failure', async () => {
  const { source, add } = await notes('a');
  const reached: string[] = [];
  const until = (id: string, last: bigint, fails = false) =>
    eventProcessor({
      id,
      events: note,
      async handle({ position }) {
        if (position < last) return 'ack';
        reached.push(id);
        if (fails) throw new Error(`${id} can't`);
        return 'stop';
      },
    });
  const consumer = createConsumer({ source, pageSize: 1 });
  consumer.add([until('first', 1n), until('failing', 2n, true), until('last', 3n)]);
  let over = false;
  const done = consumer.done.finally(() => {
    over = true;
  });
  done.catch(() => {});
  await add('b');
  await add('c');
  await expect(done).rejects.toThrow("failing can't");
  expect(over).toBe(true);
  expect(reached).toEqual(['first', 'failing', 'last']);
  consumer.add([until('again', 3n)]);
  await consumer.done;
});

test('a failure leaves the checkpoint before its event, and handling resumes there', async () => {
  const { source } = await notes('a', 'b', 'c');
  let checkpoint = globalPosition(0n);
  let mended = false;
  const got: bigint[] = [];
  const start = () => {
    const consumer = createConsumer({ source });
    consumer.add([
      eventProcessor({
        id: 'reader',
        events: [note],
        checkpoint,
        async handle({ position }) {
          if (position === 2n && !mended) throw new Error('not yet');
          got.push(position);
        },
        saveCheckpoint(position) {
          checkpoint = position;
        },
      }),
    ]);
    return consumer;
  };
  await expect(start().done).rejects.toThrow('not yet');
  expect(checkpoint).toBe(1n);
  mended = true;
  const again = start();
  while (checkpoint < 3n) await new Promise((resolve) => setImmediate(resolve));
  await again.stop();
  await again.done;
  expect(got).toEqual([1n, 2n, 3n]);
});

test('a shared reading begins at the earliest checkpoint, and each processor receives only the events after its own', async () => {
  const { source } = await notes('a', 'b', 'c', 'd');
  const reads: bigint[] = [];
  const counted: EventSource = {
    ...source,
    read(after, filter, limit) {
      reads.push(after);
      return source.read(after, filter, limit);
    },
  };
  const got = new Map<number, bigint[]>();
  const consumer = createConsumer({ source: counted, pageSize: 2 });
  consumer.add(
    [3, 1, 2].map((checkpoint) => {
      const mine: bigint[] = [];
      got.set(checkpoint, mine);
      return eventProcessor({
        id: `from ${checkpoint}`,
        events: note,
        checkpoint: globalPosition(BigInt(checkpoint)),
        async handle({ position }) {
          mine.push(position);
          return position === 4n ? 'stop' : 'ack';
        },
      });
    }),
  );
  await consumer.done;
  expect(reads.slice(0, 2)).toEqual([1n, 3n]);
  expect(Object.fromEntries(got)).toEqual({ 1: [2n, 3n, 4n], 2: [3n, 4n], 3: [4n] });
});

test('invalid sizes are refused', () => {
  const { source } = createInMemoryLog();
  expect(() => createConsumer({ source, bufferedPages: 0 })).toThrow(
    'bufferedPages of a consumer is a whole number from 1 on, found 0.',
  );
});

test('the log of an application feeds consumers of its users', async () => {
  const database = await createTestDatabase();
  const runtime = await startRuntime({
    config: defineConfig({ events: [note] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: false,
    logger: pino({ level: 'silent' }),
  });
  const append = (streamId: string) =>
    runtime.log.append({ family: note, streamId, events: [{ type: 'Written', payload: { text: streamId } }] });
  await append('a');
  const got: string[] = [];
  const consumer = createConsumer({ source: runtime.source });
  consumer.add([
    eventProcessor({
      id: 'reader',
      events: note,
      handle: async ({ streamId }) => (got.push(streamId) === 2 ? 'stop' : 'ack'),
    }),
  ]);
  await append('b');
  await consumer.done;
  expect(got).toEqual(['a', 'b']);
  await runtime.stop();
  await database.drop();
});
