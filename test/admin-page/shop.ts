import { pino } from 'pino';
import { z } from 'zod';
import {
  createRefold,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  type NewEventOf,
  type Projection,
  type Refold,
  t,
} from '../../src/index.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** An application in which each page of the admin page has something to show: held, stopped and failing parts included. */

export const cart = defineEvents('cart', {
  Opened: z.object({ customer: z.string() }),
  ItemAdded: z.object({ product: z.string(), price: z.number() }),
  Confirmed: z.object({}),
});

const cartsV1 = defineProjection({
  name: 'carts',
  version: 1,
  events: cart,
  table: { cartId: t.text().primaryKey(), customer: t.text(), items: t.integer() },
  history: true,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload }) => ({ customer: payload.customer, items: 0 }),
    ItemAdded: (row) => row && { ...row, items: row.items + 1 },
  },
});

/** Held, because clients of the first version lose `customer`. */
const cartsV2 = defineProjection({
  name: 'carts',
  version: 2,
  events: cart,
  table: {
    cartId: t.text().primaryKey(),
    buyer: t.text(),
    items: t.integer(),
    total: t.integer(),
    status: t.enum(['open', 'confirmed']),
  },
  history: true,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload }) => ({ buyer: payload.customer, items: 0, total: 0, status: 'open' }),
    ItemAdded: (row, { payload }) => row && { ...row, items: row.items + 1, total: row.total + payload.price },
    Confirmed: (row) => row && { ...row, status: 'confirmed' },
  },
});

/** Whether the code of `prices` and `mails` is broken: a retry then fails, or succeeds. */
export const code = { isBroken: true };

/** Sets aside what it can't fold. */
const prices = defineProjection({
  name: 'prices',
  version: 1,
  events: cart,
  table: { product: t.text().primaryKey(), highest: t.integer() },
  key: (event) => (event.type === 'ItemAdded' ? event.payload.product : []),
  evolve: {
    ItemAdded: (row, { payload }) => {
      if (code.isBroken && payload.price < 0) throw new Error(`The price ${payload.price} is negative.`);
      return { highest: Math.max(row?.highest ?? 0, payload.price) };
    },
  },
  onError: 'dead-letter',
});

/** Stops at the first negative price. */
const strict = defineProjection({
  name: 'strict_prices',
  version: 1,
  events: cart,
  table: { product: t.text().primaryKey(), highest: t.integer() },
  key: (event) => (event.type === 'ItemAdded' ? event.payload.product : []),
  evolve: {
    ItemAdded: (row, { payload }) => {
      if (payload.price < 0) throw new Error('A negative price.');
      return { highest: Math.max(row?.highest ?? 0, payload.price) };
    },
  },
  onError: 'stop',
});

const mails = defineReactor({
  name: 'mails',
  events: cart,
  from: 'beginning',
  handle: {
    Confirmed: async () => {
      if (code.isBroken) throw new Error('The mail server refuses.');
    },
  },
  onError: { policy: 'dead-letter', retries: [] },
});

const released = [cartsV1, prices, strict];

export const operator = { name: 'ada', token: 'token-of-ada-who-may-do-all', rights: 'all' } as const;
export const reader = { name: 'rita', token: 'token-of-rita-who-may-read', rights: 'read' } as const;

export interface Shop {
  readonly refold: Refold;
  readonly url: string;
  /** The names of a token in the address, as `refold dev` prints it. */
  readonly page: (who: { readonly token: string }) => string;
  append(cartId: string, ...events: readonly NewEventOf<typeof cart>[]): Promise<void>;
  /** Stops the application, and starts it again on the same port. */
  stopGateway(): Promise<void>;
  startGateway(): Promise<void>;
  close(): Promise<void>;
}

/** @param readStores of the versions in `more` */
export async function openShop(
  more: readonly Projection[] = [],
  readStores: Readonly<Record<string, { readonly url: string }>> = {},
): Promise<Shop> {
  const database = await createTestDatabase();
  code.isBroken = true;
  const start = (port: number, projections: readonly Projection[]) =>
    createRefold(
      defineConfig({
        projections: [...projections, ...more],
        reactors: [mails],
        database: { url: database.url },
        readStores,
        gateway: { port, admin: { tokens: [operator, reader] } },
      }),
      { logger: pino({ level: 'silent' }), name: 'shop-1' },
    );
  let refold: Refold | undefined = await start(0, released);
  const url = refold.url ?? '';
  const running = () => {
    if (!refold) throw new Error('The shop is stopped.');
    return refold;
  };
  const append: Shop['append'] = async (streamId, ...events) =>
    void (await running().log.append({ family: cart, streamId, events }));
  const restart = async () => {
    await refold?.stop();
    refold = await start(Number(new URL(url).port), [...released, cartsV2]);
  };
  await fill(append);
  await until(async () => !(await statesOf(url)).includes('BEHIND'));
  await restart();
  await until(async () => (await statesOf(url)).includes('HELD'));
  return {
    get refold() {
      return running();
    },
    url,
    page: ({ token }) => `${url}/admin#token=${token}`,
    append,
    async stopGateway() {
      await refold?.stop();
      refold = undefined;
    },
    startGateway: restart,
    async close() {
      await refold?.stop();
      await database.drop();
    },
  };
}

async function fill(append: Shop['append']): Promise<void> {
  for (const id of ['c1', 'c2', 'c3'])
    await append(
      id,
      { type: 'Opened', payload: { customer: `customer-of-${id}` } },
      { type: 'ItemAdded', payload: { product: 'tea', price: 4 } },
      { type: 'ItemAdded', payload: { product: 'cup', price: 9 } },
    );
  await append('c1', { type: 'Confirmed', payload: {} });
  await append('c2', { type: 'ItemAdded', payload: { product: 'pot', price: -1 } });
  await append('c3', { type: 'ItemAdded', payload: { product: 'pot', price: 30 } });
}

/** The health of all versions, as the admin API says it. */
async function statesOf(url: string): Promise<string> {
  const query = '{ versions { items { health } } }';
  const response = await fetch(`${url}/admin/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${operator.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.text();
}
