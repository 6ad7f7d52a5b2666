import type pg from 'pg';
import { z } from 'zod';
import { defineCommand, defineReactor, defineState, type Reactor } from '../src/index.ts';
import { order, parcel } from './domain.ts';

/** States are stored, so commands decide on state that was stored during faults. */
const dispatched = defineState(
  parcel,
  () => ({ parcels: 0 }),
  { Dispatched: ({ parcels }) => ({ parcels: parcels + 1 }) },
  {
    snapshotEvery: 5,
  },
);

/** One parcel per order, numbered within its customer. */
export const dispatch = defineCommand({
  name: 'dispatch',
  input: z.object({ customer: z.string(), order: z.string(), append: z.int() }),
  state: dispatched,
  stream: ({ customer }) => `customer-${customer}`,
  decide: ({ order: orderId, append }, { parcels }) => ({
    type: 'Dispatched',
    payload: { order: orderId, append, number: parcels + 1 },
  }),
});

const untilItWorks = [{ times: Number.POSITIVE_INFINITY, first: 50, maxPause: 500 }];

/** A workflow, whose steps run once, and a message to the outside, which is sent at least once. The outside is a table. */
export function reactorsOf(outside: pg.Pool): readonly Reactor[] {
  return [
    defineReactor({
      name: 'parcels',
      events: order,
      from: 'beginning',
      concurrency: 8,
      key: (event) => (event.type === 'Placed' ? event.payload.customer : event.streamId),
      handle: {
        Placed: async ({ streamId, payload: { customer, append } }, { execute }) => {
          await execute(dispatch, { customer, order: streamId, append });
        },
      },
      onError: { policy: 'stop', retries: untilItWorks },
    }),
    defineReactor({
      name: 'messages',
      events: order,
      from: 'beginning',
      concurrency: 8,
      handle: {
        Placed: async ({ position, payload }, { messageId, attempt }) => {
          if (attempt === 1 && payload.append % 10 === 0) throw new Error('the outside is not available yet');
          const values = [messageId, position.toString(), attempt];
          await outside.query('insert into chaos.messages (id, position, attempt) values ($1, $2, $3)', values);
        },
      },
      onError: { policy: 'stop', retries: untilItWorks },
    }),
  ];
}
