import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  CommandRejected,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineState,
  t,
} from '../../src/index.ts';
import { givenEvents, givenStream } from '../../src/testing.ts';

// The code of the guide for coding assistants, templates/shared/AGENTS.md. It is compiled and executed here.

const order = defineEvents('order', {
  Placed: z.object({ total: z.string() }), // money is a string, so it stays exact
  Paid: z.object({}),
  Deleted: z.object({}),
});

const ordersV1 = defineProjection({
  name: 'orders', // snake_case; the GraphQL fields follow from it
  version: 1,
  events: order, // an event family
  table: { orderId: t.text().primaryKey(), total: t.decimal(14, 2), status: t.enum(['Open', 'Paid']).index() },
  key: (event) => event.streamId, // the row that the event changes; an array for several rows
  evolve: {
    // One handler per event type. Events without a handler are not read.
    Placed: (_, { payload }) => ({ total: payload.total, status: 'Open' }),
    Paid: (row) => row && { ...row, status: 'Paid' },
    Deleted: () => null, // deletes the row
  },
});

const orderState = defineState(order, () => ({ isPlaced: false, isPaid: false }), {
  Placed: (state) => ({ ...state, isPlaced: true }),
  Paid: (state) => ({ ...state, isPaid: true }),
});

const payOrder = defineCommand({
  name: 'payOrder', // the mutation's name
  input: z.object({ orderId: z.string() }),
  stream: ({ orderId }) => orderId,
  state: orderState, // or `events: order` if the decision depends on the input only
  decide: (_, { isPlaced, isPaid }) => {
    if (!isPlaced) throw new CommandRejected('There is no such order.');
    return isPaid ? [] : { type: 'Paid', payload: {} };
  },
});

const placed = { type: 'Placed', payload: { total: '9.50' } } as const;

test('an order is paid once', async () => {
  await givenStream(order, placed).when(payOrder, { orderId: 'o1' }).thenEvents({ type: 'Paid', payload: {} });
  await givenStream(order).when(payOrder, { orderId: 'o1' }).thenRejected('There is no such order.');
});

test('an order has its total', async () => {
  const orders = givenEvents({ family: order, streamId: 'o1', events: [placed] }).projectedBy(ordersV1);
  await orders.thenRows({ orderId: 'o1', total: '9.50', status: 'Open' });
  await orders.thenReplayable(); // any batches make the same rows
});

test('an order that is paid and deleted, as the guide says', async () => {
  const paid = { type: 'Paid', payload: {} } as const;
  const given = givenEvents(
    { family: order, streamId: 'o1', events: [placed, paid] },
    { family: order, streamId: 'o2', events: [placed, { type: 'Deleted', payload: {} }, paid] },
  ).projectedBy(ordersV1);
  await given.thenRows({ orderId: 'o1', total: '9.50', status: 'Paid' });
  await given.thenReplayable();
  await givenStream(order, placed, paid).when(payOrder, { orderId: 'o1' }).thenEvents();
  expect(defineConfig({ projections: [ordersV1], commands: [payOrder] }).commands).toHaveLength(1);
});

test('all code of the guide is that of this file', () => {
  const lines = (text: string) => text.split('\n').map((line) => line.trim().replace(/^export /, ''));
  const guide = readFileSync(join(import.meta.dirname, '../../templates/shared/AGENTS.md'), 'utf8');
  const blocks = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code);
  const here = new Set(lines(readFileSync(import.meta.filename, 'utf8')));
  expect(blocks).toHaveLength(4);
  expect(blocks.flatMap(lines).filter((line) => !here.has(line))).toEqual([]);
});
