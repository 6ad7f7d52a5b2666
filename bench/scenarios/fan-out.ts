import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { cart } from '../carts.ts';
import { type ServerProcess, startServerProcess } from '../http/server-process.ts';
import { startSubscribers } from '../http/subscribers.ts';
import { openPool } from '../open-pool.ts';
import { inTurn, median } from '../rounds.ts';
import type { BenchContext, Result, Scenario } from '../scenario.ts';

const query = 'subscription { cartSummary(cartId: "cart-1") { cartId customer items total } }';
const changesPerTurn = 5;
const protocols = { sse: 'http', ws: 'ws' } as const;
type Transport = keyof typeof protocols;

/** One change of one row that all subscribers watch: the time until the last of them has it, and its cost for the server. */
export const fanOut: readonly Scenario[] = (['sse', 'ws'] as const).map((transport) => ({
  name: `fan-out-${transport}`,
  async run(context) {
    const results: Result[] = [];
    for (const count of context.quick ? [1_000] : [1_000, 5_000, 10_000])
      results.push(...(await measure(context, transport, count)));
    return results;
  },
}));

async function measure(
  { server, rounds }: BenchContext,
  transport: Transport,
  count: number,
): Promise<readonly Result[]> {
  const url = await server.createDatabase('bench_fan_out');
  await migrate(url);
  await using refold = await startServerProcess('refold-server.ts', url);
  await using raw = await startServerProcess('raw-server.ts', url);
  const db = createDatabase({ url });
  const log = createEventLog(db, [cart]);
  const pool = openPool(url, 1);
  await pool.query('create table raw_changes (n int)');
  await log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'Opened', payload: { customer: 'c' } }] });
  const subscribe = (target: ServerProcess, count: number) =>
    startSubscribers({ url: `${target.url.replace('http', protocols[transport])}/graphql`, query, count });

  // Some connect and leave first: one-time allocations should not count as theirs.
  for (const target of [refold, raw]) {
    await using _first = await subscribe(target, 100);
  }
  const before = { refold: await refold.memory(), raw: await raw.memory() };
  await using ofRefold = await subscribe(refold, count);
  await using ofRaw = await subscribe(raw, count);
  const kilobytes = {
    refold: ((await refold.memory()) - before.refold) / 1024 / count,
    raw: ((await raw.memory()) - before.raw) / 1024 / count,
  };

  const microseconds = { refold: [] as number[], raw: [] as number[] };
  /** Subscribers reached per second, including the change itself. */
  const turn = (
    name: 'refold' | 'raw',
    target: ServerProcess,
    change: (items: number) => Promise<unknown>,
    all: (items: number) => Promise<bigint>,
  ) => {
    let items = 0;
    return async () => {
      await server.settle();
      const paces: number[] = [];
      const used = await target.processor();
      for (let changes = 0; changes < changesPerTurn; changes++) {
        const start = process.hrtime.bigint();
        const changed = change(++items);
        paces.push(count / (Number((await all(items)) - start) / 1e9));
        await changed;
      }
      microseconds[name].push(((await target.processor()) - used) / changesPerTurn / count);
      return median(paces);
    };
  };
  const item = { product: 'product-7', quantity: 1, price: '0' };
  const figures = await inTurn(rounds, {
    refold: turn(
      'refold',
      refold,
      () => log.append({ family: cart, streamId: 'cart-1', events: [{ type: 'ItemAdded', payload: item }] }),
      ofRefold.all,
    ),
    limit: turn(
      'raw',
      raw,
      (items) =>
        pool.query(
          `with written as (insert into raw_changes values (${items})) select pg_notify('raw_changes', '${items}')`,
        ),
      ofRaw.all,
    ),
  });
  await db.close();
  await pool.end();
  const common = { limitName: 'raw sockets' } as const;
  return [
    {
      ...common,
      scenario: `fan-out-${transport}-to-${count}`,
      unit: 'subscribers/s',
      better: 'more',
      refold: figures.refold ?? [],
      limit: figures.limit,
      target: { toLimit: 0.7 },
    },
    {
      ...common,
      scenario: `processor-of-a-delivery-${transport}-${count}`,
      unit: 'µs',
      better: 'less',
      refold: microseconds.refold,
      limit: microseconds.raw,
      target: {},
    },
    {
      ...common,
      scenario: `memory-of-a-subscriber-${transport}-${count}`,
      unit: 'KB',
      better: 'less',
      refold: [kilobytes.refold],
      limit: [kilobytes.raw],
      target: { atMost: 25 },
    },
  ];
}
