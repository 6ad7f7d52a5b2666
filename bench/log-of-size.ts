import { globalPosition } from '../src/index.ts';
import { createEventLog } from '../src/store/event-log.ts';
import { createDatabase } from '../src/store/postgres/database.ts';
import { buildByRefold } from './build.ts';
import { createCartLog, forgetReadModels } from './cart-log.ts';
import { cart, cartSummary, itemAdded } from './carts.ts';
import { check, checkSameRows } from './check.ts';
import { type Load, requestsPerSecond } from './http/load.ts';
import { type ServerProcess, startServerProcess } from './http/server-process.ts';
import { subscribe } from './http/server-sent-events.ts';
import { cartSummaryBySql } from './limits/set-based-build.ts';
import { openClient } from './open-client.ts';
import { median, type Turn } from './rounds.ts';
import type { BenchServer } from './server.ts';

/** The costs of operations on a log of some length. Each measures the same work at any length. */
export interface LogOfSize {
  readonly events: number;
  /** Microseconds per event of a first build. */
  readonly build: Turn;
  /** Starts a server on it. */
  serve(): Promise<void>;
  /** Microseconds per event of a read, in pages from all parts of the log. */
  readonly read: Turn;
  /** Microseconds per response, with many requests at once. */
  readonly byId: Turn;
  readonly list: Turn;
  /** Microseconds per append of one event, with many at once. */
  readonly append: Turn;
  /** Milliseconds from an append until a subscriber has the changed row. */
  readonly tail: Turn;
  /** Compares the table with the result of SQL over the log, and closes everything. */
  close(): Promise<void>;
}

const eventsOfStream = 20;
const callers = 32;
const appendsOfTurn = 320;
const pagesOfTurn = 100;
const pageSize = 1000;
const tailsOfTurn = 40;
// As many as the shortest log has: concurrent look-ups of one row are joined.
const rowsAskedFor = 500;

export async function createLogOfSize(server: BenchServer, events: number, milliseconds: number): Promise<LogOfSize> {
  const streams = events / eventsOfStream;
  const { url } = await createCartLog(server, 'bench_growth', events, streams);
  const client = await openClient(url);
  const db = createDatabase({ url });
  const log = createEventLog(db, [cart]);
  let served: ServerProcess | undefined;
  let appended = 0;
  let itemsOfTail = 0;

  const append = (streamId: string) => log.append({ family: cart, streamId, events: [itemAdded] });
  const asking = (requests: Load['requests']) => async () =>
    1e6 / (await requestsPerSecond({ url: served?.url ?? '', requests, connections: callers, milliseconds }));
  const request = (query: string, value: string) => ({
    path: '/graphql',
    body: JSON.stringify({ query, variables: { value } }),
    expected: `"${value}"`,
  });

  return {
    events,
    async build() {
      await forgetReadModels(client);
      await server.settle();
      return ((await buildByRefold(url, [cartSummary])) * 1e6) / events;
    },
    async serve() {
      served = await startServerProcess('refold-server.ts', url);
    },
    async read() {
      const upTo = await log.horizon();
      const start = performance.now();
      for (let page = 0; page < pagesOfTurn; page++) {
        const after = globalPosition(BigInt(Math.floor((page * (events - pageSize)) / pagesOfTurn)));
        const { events: found } = await log.readAll({ after, upTo, limit: pageSize });
        check(found.length === pageSize, () => `${found.length} events read of ${pageSize}`);
      }
      return ((performance.now() - start) * 1000) / (pagesOfTurn * pageSize);
    },
    byId: asking(
      Array.from({ length: rowsAskedFor }, (_, index) =>
        request(
          'query ($value: ID!) { cartSummary(cartId: $value) { cartId customer items total } }',
          `cart-${Math.floor((index * streams) / rowsAskedFor)}`,
        ),
      ),
    ),
    list: asking(
      Array.from({ length: 12 }, (_, index) =>
        request(
          `query ($value: String!) {
            cartSummaries(where: { customer: { eq: $value } }, orderBy: [{ total: DESC }], first: 20) {
              edges { node { cartId customer items total } }
            }
          }`,
          `customer-${Math.floor((index * streams) / 40 / 12)}`,
        ),
      ),
    ),
    async append() {
      await server.settle();
      const start = performance.now();
      const left = Array.from({ length: appendsOfTurn }, () => appended++);
      await Promise.all(
        Array.from({ length: callers }, async () => {
          for (let next = left.pop(); next !== undefined; next = left.pop()) await append(`cart-${next % streams}`);
        }),
      );
      return ((performance.now() - start) * 1000) / appendsOfTurn;
    },
    async tail() {
      const heard = createItemCount();
      const subscriber = await subscribe(
        `${served?.url}/graphql`,
        `subscription { cartSummary(cartId: "cart-0") { items } }`,
        { onText: heard.take },
      );
      itemsOfTail = await heard.atLeast(0);
      const took: number[] = [];
      for (let count = 0; count < tailsOfTurn; count++) {
        const start = performance.now();
        const { position } = await append('cart-0');
        check(position > 0n, () => 'an append has a position');
        itemsOfTail = await heard.atLeast(itemsOfTail + 1);
        took.push(performance.now() - start);
      }
      subscriber.close();
      return median(took);
    },
    async close() {
      const head = (await log.head()).toString();
      const reached = 'select min(checkpoint) >= $1 as yes from refold.processors';
      while (!(await client.query<{ yes: boolean | null }>(reached, [head])).rows[0]?.yes)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await cartSummaryBySql.build(client);
      await checkSameRows(client, cartSummary, cartSummaryBySql);
      await served?.[Symbol.asyncDispose]();
      await Promise.all([client.end(), db.close()]);
    },
  };
}

/** The items of a cart that a subscriber has seen. */
function createItemCount() {
  let items = -1;
  let waiting: { readonly least: number; resolve(items: number): void } | undefined;
  return {
    take(text: string) {
      for (const [, found] of text.matchAll(/"items":(\d+)/g)) items = Math.max(items, Number(found));
      if (waiting && items >= waiting.least) waiting.resolve(items);
    },
    atLeast(least: number): Promise<number> {
      if (items >= least) return Promise.resolve(items);
      return new Promise((resolve) => {
        waiting = { least, resolve };
      });
    },
  };
}
