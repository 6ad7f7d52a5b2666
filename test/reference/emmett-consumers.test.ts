/** What Emmett promises of consumers, projectors and reactors, by number. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createConsumer,
  defineCommand,
  defineReactor,
  defineState,
  type EventSource,
  eventProcessor,
  type GlobalPosition,
  globalPosition,
  type HandlerResult,
  type Processor,
  type Refold,
} from '../../src/index.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { createInMemoryLog } from '../../src/testing.ts';
import { until } from '../support/until.ts';
import { type Application, answers, caughtUp, createApplication, statusOf } from './application.ts';
import { added, cart, itemCount } from './cart.ts';

const step = { actor: 'ann', reason: 'the counts were wrong' };
let application: Application;
let shop: Refold;

class MailServerDown extends Error {}
const attempts: number[] = [];
const mailed: string[] = [];

/** Sends a mail for each confirmed cart. */
const mails = defineReactor({
  name: 'mails',
  events: cart,
  from: 'beginning',
  handle: {
    async Confirmed({ streamId }) {
      if (streamId === 'unlucky') attempts.push(performance.now());
      if (streamId === 'unlucky' && attempts.length < 4) throw new MailServerDown();
      if (streamId === 'poison') throw new TypeError('there is no address');
      mailed.push(streamId);
    },
  },
  onError: { policy: 'dead-letter', retries: [{ on: MailServerDown, times: 5, first: 20, jitter: 0 }, { times: 0 }] },
});

const thank = defineCommand({
  name: 'thank',
  input: z.object({ cartId: z.string() }),
  state: defineState(cart, () => ({}), {}),
  stream: ({ cartId }) => `thanks-${cartId}`,
  decide: ({ cartId }) => ({ type: 'Opened', payload: { customer: cartId } }),
});

/** A workflow: opens a cart of thanks for each confirmed one. */
const thanks = defineReactor({
  name: 'thanks',
  events: cart,
  from: 'beginning',
  handle: { Confirmed: async ({ streamId }, { execute }) => void (await execute(thank, { cartId: streamId })) },
});

const confirmed = (streamId: string) =>
  ({ family: cart, streamId, events: [{ type: 'Confirmed', payload: {} }] }) as const;

beforeAll(async () => {
  application = await createApplication();
  shop = await application.start({
    projections: [itemCount('plain_count'), itemCount('fixed_count')],
    reactors: [mails, thanks],
  });
});
afterAll(() => application.close());

/** Positions of the events that it has handled. */
function collector(id: string, checkpoint?: GlobalPosition, handle: (seen: number) => HandlerResult = () => 'ack') {
  const seen: bigint[] = [];
  const processor = eventProcessor({
    id,
    events: cart,
    ...(checkpoint === undefined ? {} : { checkpoint }),
    async handle({ position }) {
      seen.push(position);
      return handle(seen.length);
    },
  });
  return { seen, processor };
}

async function logOf(events: number) {
  const log = createInMemoryLog();
  await log.append(added('a', ...Array.from({ length: events }, () => 1)));
  return log;
}

test('1. A consumer only delivers: it reads the log in batches, waits for more, and passes events on', async () => {
  const log = await logOf(3);
  const { seen, processor } = collector('archive');
  const consumer = createConsumer({ source: log.source, pageSize: 2 });
  consumer.add([processor]);
  await until(() => seen.length === 3);
  await log.append(added('a', 1));
  await until(() => seen.length === 4);
  await consumer.stop();
  expect(seen).toEqual([1n, 2n, 3n, 4n]);
});

test('2. Several processors share a consumer, each with its own checkpoint and pace', async () => {
  const log = await logOf(20);
  const gate = Promise.withResolvers<void>();
  const slow = eventProcessor({ id: 'slow', events: cart, handle: () => gate.promise });
  const quick = collector('quick');
  const consumer = createConsumer({ source: log.source, pageSize: 2, bufferedPages: 1 });
  consumer.add([slow, quick.processor]);
  await until(() => quick.processor.position === 20n);
  expect(slow.position).toBe(0n);
  gate.resolve();
  await until(() => slow.position === 20n);
  await consumer.stop();
});

test('3. A consumer starts from the earliest checkpoint, and processors get nothing that they have', async () => {
  const log = await logOf(6);
  const from: bigint[] = [];
  const source: EventSource = {
    ...log.source,
    read(after, filter, limit) {
      from.push(after);
      return log.source.read(after, filter, limit);
    },
  };
  const [early, late] = [collector('early', globalPosition(2n)), collector('late', globalPosition(4n))];
  const consumer = createConsumer({ source });
  consumer.add([late.processor, early.processor]);
  await until(() => early.seen.length === 4 && late.seen.length === 2);
  await consumer.stop();
  expect(from[0]).toBe(2n);
  expect([early.seen, late.seen]).toEqual([
    [3n, 4n, 5n, 6n],
    [5n, 6n],
  ]);
});

test('4. The failure of one processor stops only that one, and the consumer is done when all are', async () => {
  const log = await logOf(3);
  const failing = eventProcessor({
    id: 'failing',
    events: cart,
    handle: async () => Promise.reject(new Error('no room')),
  });
  const { seen, processor } = collector('well', undefined, (count) => (count === 5 ? 'stop' : 'ack'));
  const consumer = createConsumer({ source: log.source });
  const [failed] = consumer.add([failing, processor]);
  await expect(failed?.done).rejects.toThrow('no room');
  await log.append(added('a', 1, 1, 1));
  await expect(consumer.done).rejects.toThrow('no room');
  expect(seen).toEqual([1n, 2n, 3n, 4n, 5n]);
});

test('5. A handler acknowledges an event, skips it, or stops', async () => {
  const log = await logOf(5);
  const results: readonly HandlerResult[] = ['ack', 'skip', 'ack', 'stop'];
  const { processor } = collector('choosy', undefined, (count) => results[count - 1] ?? 'ack');
  const consumer = createConsumer({ source: log.source });
  consumer.add([processor]);
  await consumer.done;
  expect(processor).toMatchObject({ position: 4n, handled: 3, skipped: 1 });
});

test('6. A poison message is kept for an investigation, while others go on', async () => {
  await shop.log.append(confirmed('poison'));
  await shop.log.append(confirmed('after the poison'));
  await until(() => mailed.includes('after the poison'));
  const [letter] = await application.sql(
    `select stream_id, error ->> 'message' as message from refold.reactor_letters where reactor = 'mails'`,
  );
  expect(letter).toEqual({ stream_id: 'poison', message: expect.stringContaining('there is no address') });
});

test('7. Retries depend on the kind of the error, with pauses that grow exponentially', async () => {
  await shop.log.append(confirmed('unlucky'));
  await until(() => mailed.includes('unlucky'));
  expect(attempts).toHaveLength(4);
  const pauses = attempts.slice(1).map((at, index) => at - (attempts[index] ?? at));
  // A pause may be longer on a busy machine, and by a millisecond shorter.
  for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(20 * 2 ** index - 1);
});

/**
 * In another way: the buffer of each processor is bounded (`pageSize`, `bufferedPages`), and a slow one has a reader of its own. This is the
 * only strategy; Emmett has others by choice.
 */
test('8. Back-pressure: the log is read only as far ahead of a slow processor as its buffer holds', async () => {
  const log = await logOf(100);
  let [furthest, ahead] = [0n, 0n];
  const source: EventSource = {
    ...log.source,
    async read(after, filter, limit) {
      const page = await log.source.read(after, filter, limit);
      furthest = page.upTo;
      if (furthest - slow.position > ahead) ahead = furthest - slow.position;
      return page;
    },
  };
  const gate = Promise.withResolvers<void>();
  const slow = eventProcessor({ id: 'slow', events: cart, handle: () => gate.promise });
  const consumer = createConsumer({ source, pageSize: 5, bufferedPages: 2 });
  consumer.add([slow]);
  await until(() => furthest >= 15n);
  gate.resolve();
  await until(() => slow.position === 100n);
  await consumer.stop();
  expect(ahead).toBeLessThanOrEqual(20n);
});

test('9. Projections, reactors, workflows and processors of your own read the same log under one contract', async () => {
  let reached = 0n;
  const own: Processor = {
    id: 'own',
    filter: [{ family: 'cart', types: ['Confirmed'] }],
    checkpoint: globalPosition(0n),
    async process({ upTo }) {
      reached = upTo;
      return 'continue';
    },
  };
  const consumer = createConsumer({ source: shop.source });
  consumer.add([own]);
  await shop.log.append(added('together', 3));
  const { position } = await shop.log.append(confirmed('together'));
  await until(() => reached >= position && mailed.includes('together'));
  await answers(shop, '{ plainCount(cartId: "together") { items } }', { plainCount: { items: 3 } });
  await until(async () => (await shop.log.streamVersion(cart, 'thanks-together')) === 1);
  await consumer.stop();
});

test('10. Only the declared event types reach a processor', async () => {
  const log = createInMemoryLog();
  await log.append(added('a', 1));
  await log.append(confirmed('a'));
  const types: string[] = [];
  const processor = eventProcessor({
    id: 'confirmations',
    events: cart,
    types: ['Confirmed'],
    handle: async ({ type }) => void types.push(type),
  });
  const consumer = createConsumer({ source: log.source });
  consumer.add([processor]);
  await until(() => processor.position === 2n);
  await consumer.stop();
  expect(types).toEqual(['Confirmed']);
});

/**
 * In another way: from a snapshot of the table, a rebuilt table is whole; a version that starts at a position without one says that it is
 * partial.
 */
test('11. One projection is rebuilt from a chosen position, into a new table or its own, while the others run on', async () => {
  await caughtUp(shop, 'fixed_count@1');
  await shop.log.append(added('kept', 1));
  await caughtUp(shop, 'fixed_count@1');
  const version = { name: 'fixed_count', version: 1 };
  const snapshot = await takeSnapshot({ db: application.db, readSchema: 'read_models', ...version }, step);
  await shop.log.append(added('kept', 2, 3));
  for (const inPlace of [false, true]) {
    await caughtUp(shop, 'fixed_count@1');
    await application.sql(`update read_models.fixed_count set items = 99`); // as after a bug
    await shop.rebuilds.request('fixed_count@1', { ...step, inPlace, from: { upTo: snapshot.checkpoint } });
    await caughtUp(shop, 'fixed_count@1');
    await answers(shop, '{ fixedCount(cartId: "kept") { items } }', { fixedCount: { items: 6 } });
  }
  await answers(shop, '{ plainCount(cartId: "kept") { items } }', { plainCount: { items: 6 } });
  const startAfter = snapshot.checkpoint;
  const later = await application.start({ projections: [itemCount('later_count', { startAfter })] });
  await caughtUp(later, 'later_count@1');
  await answers(later, '{ laterCount(cartId: "kept") { items } }', { laterCount: { items: 5 } });
  expect(await statusOf(later, 'later_count@1')).toMatchObject({ startsAfter: startAfter });
  await answers(later, '{ _meta { projections(name: "plain_count") { startsAfter } } }', {
    _meta: { projections: [{ startsAfter: null }] },
  });
});

test('12. A processor is tested with a stream that is no database', async () => {
  const log = await logOf(2);
  const { seen, processor } = collector('tested');
  await processor.process({
    after: globalPosition(0n),
    upTo: globalPosition(2n),
    horizon: globalPosition(2n),
    events: log.events,
  });
  expect(seen).toEqual([1n, 2n]);
});

test('13. Workers run apart from the process of the API, and scale by processes', async () => {
  const [one, two] = [itemCount('apart_one'), itemCount('apart_two')];
  const gateway = await application.start({ projections: [one, two] }, { role: 'gateway', name: 'api' });
  const workers = ['worker 1', 'worker 2'];
  for (const name of workers) await application.start({ projections: [one, two] }, { role: 'worker', name });
  await gateway.log.append(added('apart', 5));
  await answers(gateway, '{ apartOne(cartId: "apart") { items } apartTwo(cartId: "apart") { items } }', {
    apartOne: { items: 5 },
    apartTwo: { items: 5 },
  });
  const owners = async () => {
    const statuses = await Promise.all(['apart_one@1', 'apart_two@1'].map((id) => statusOf(gateway, id)));
    return statuses.map(({ owner }) => owner).sort();
  };
  await until(async () => JSON.stringify(await owners()) === JSON.stringify(workers));
});

test('14. The same projection started twice folds every event once', async () => {
  const twice = itemCount('twice_count');
  const [first, second] = await Promise.all([
    application.start({ projections: [twice] }, { name: 'first' }),
    application.start({ projections: [twice] }, { name: 'second' }),
  ]);
  await Promise.all([first, second].map(({ log }) => log.append(added('twice', 1, 2, 3))));
  await caughtUp(first, 'twice_count@1');
  await answers(second, '{ twiceCount(cartId: "twice") { items } }', { twiceCount: { items: 12 } });
  await first.stop();
  await second.log.append(added('twice', 4));
  await answers(second, '{ twiceCount(cartId: "twice") { items } }', { twiceCount: { items: 16 } });
});
