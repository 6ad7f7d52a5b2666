import { z } from 'zod';
import { defineCommand, defineConfig, defineEvents } from '../../src/index.ts';
import { natsBroker } from './nats-broker.ts';
import { outboxRelay } from './relay.ts';

export const order = defineEvents('order', {
  OrderPlaced: z.object({ customer: z.string(), total: z.string() }),
  OrderShipped: z.object({ parcel: z.string() }),
});

const orderId = z.string().min(1).max(100);

const placeOrder = defineCommand({
  name: 'placeOrder',
  input: z.object({ orderId, customer: z.string(), total: z.string() }),
  events: order,
  stream: (input) => input.orderId,
  decide: ({ orderId: _, ...payload }) => ({ type: 'OrderPlaced', payload }),
});

/** `kafkaBroker({ brokers: ['127.0.0.1:9092'], topic: 'orders' })` works as well. */
export const broker = natsBroker({ servers: process.env.NATS_URL ?? '127.0.0.1:4222', stream: 'shop' });

export default defineConfig({
  events: [order],
  commands: [placeOrder],
  reactors: [outboxRelay({ name: 'order_relay', events: order, broker })],
});
