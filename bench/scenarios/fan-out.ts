import { createDatabase } from '../../src/store/database.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { migrate } from '../../src/store/migrate.ts';
import { cart } from '../carts.ts';
import { startServerProcess } from '../http/server-process.ts';
import { startSubscribers } from '../http/subscribers.ts';
import { openPool } from '../open-pool.ts';
import { inTurn, median } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const query = 'subscription { cartSummary(cartId: "cart-1") { cartId customer items total } }';
const changesPerTurn = 5;

/** One change of one row, and everybody watches that row. Until the last of them has it. */
export const fanOut: Scenario = {
  name: 'fan-out',
  async run({ server, quick, rounds }) {
    const count = quick ? 1_000 : 10_000;
    const url = await server.createDatabase('bench_fan_out');
    await migrate(url);
    await using refold = await startServerProcess('refold-server.ts', url);
    await using raw = await startServerProcess('raw-sse-server.ts', url);
    const db = createDatabase({ url });
    const log = createEventLog(db, [cart]);
    const pool = openPool(url, 1);
    await pool.query('create table raw_changes (n int)');
    await log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'Opened', payload: { customer: 'c' } }] });

    // One comes and goes first, so that what is made once is not counted as theirs.
    for (const { url: target } of [refold, raw]) {
      await using _first = await startSubscribers({ url: `${target}/graphql`, query, count: 1 });
    }
    const before = { refold: await refold.memory(), raw: await raw.memory() };
    await using ofRefold = await startSubscribers({ url: `${refold.url}/graphql`, query, count });
    await using ofRaw = await startSubscribers({ url: `${raw.url}/graphql`, query, count });
    const kilobytes = {
      refold: ((await refold.memory()) - before.refold) / 1024 / count,
      raw: ((await raw.memory()) - before.raw) / 1024 / count,
    };

    /** Subscribers reached a second, the change itself included. */
    const turn = (change: (items: number) => Promise<unknown>, all: (items: number) => Promise<bigint>) => {
      let items = 0;
      return async () => {
        await server.settle();
        const paces: number[] = [];
        for (let changes = 0; changes < changesPerTurn; changes++) {
          const start = process.hrtime.bigint();
          const changed = change(++items);
          paces.push(count / (Number((await all(items)) - start) / 1e9));
          await changed;
        }
        return median(paces);
      };
    };
    const item = { product: 'product-7', quantity: 1, price: '0' };
    const figures = await inTurn(rounds, {
      refold: turn(
        () => log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'ItemAdded', payload: item }] }),
        ofRefold.all,
      ),
      limit: turn(
        (items) =>
          pool.query(
            `with written as (insert into raw_changes values (${items})) select pg_notify('raw_changes', '${items}')`,
          ),
        ofRaw.all,
      ),
    });
    await db.close();
    await pool.end();
    return [
      {
        scenario: `fan-out-to-${count}`,
        unit: 'subscribers/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'raw sockets',
        target: { toLimit: 0.7 },
      },
      {
        scenario: 'memory-of-a-subscriber',
        unit: 'KB',
        better: 'less',
        refold: [kilobytes.refold],
        limit: [kilobytes.raw],
        limitName: 'raw sockets',
        target: { atMost: 25 },
      },
    ];
  },
};
