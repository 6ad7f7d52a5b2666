import { pino } from 'pino';
import { defineConfig, defineProjection } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { migrate } from '../../src/store/migrate.ts';
import { callsPerSecond } from '../calls-per-second.ts';
import { cart, cartSummary } from '../carts.ts';
import { check } from '../check.ts';
import { inTurn } from '../rounds.ts';
import type { BenchContext, Result, Scenario } from '../scenario.ts';

const callers = 32;
const payload = { product: 'product-7', quantity: 1, price: '12.50' };
const inlineSummary = defineProjection({
  name: 'cart_summary_inline',
  version: 1,
  events: cart,
  mode: 'inline',
  table: cartSummary.columns,
  key: (event) => event.streamId,
  evolve: {
    Opened: (_, { payload: { customer } }) => ({ customer, items: 0, total: '0' }),
    ItemAdded: (row, event) => ({
      customer: row?.customer ?? 'nobody',
      items: (row?.items ?? 0) + event.payload.quantity,
      total: row?.total.plus(event.payload.price) ?? event.payload.price,
    }),
  },
});

/** The same append with one inline projection and without. Events a second. */
export const appendInline: Scenario = {
  name: `append-inline-1x${callers}`,
  async run({ server, quick, rounds }: BenchContext): Promise<readonly Result[]> {
    const milliseconds = quick ? 400 : 3000;
    const runtimes: Runtime[] = [];
    const open = async (database: string, withInline: boolean) => {
      const url = await server.createDatabase(database);
      await migrate(url);
      const runtime = await startRuntime({
        config: defineConfig({ projections: withInline ? [inlineSummary] : [], events: [cart] }),
        url,
        owner: 'bench',
        development: false,
        maintain: true,
        logger: pino({ level: 'silent' }),
      });
      runtimes.push(runtime);
      return runtime;
    };
    const inline = await open('bench_append_inline', true);
    const plain = await open('bench_append_plain', false);
    while ((await inline.status())[0]?.inline !== 'live') await new Promise((resolve) => setTimeout(resolve, 20));

    const calls = { inline: 0, plain: 0 };
    const turn =
      (kind: keyof typeof calls, { log }: Runtime) =>
      async () => {
        const call = async (caller: number) => {
          const streamId = `cart-${caller}-${Math.floor(calls[kind]++ / 10)}`;
          await log.append({ family: cart, streamId, events: [{ type: 'ItemAdded', payload }] });
        };
        await server.settle();
        await callsPerSecond(callers, 100, call);
        return callsPerSecond(callers, milliseconds, call);
      };
    const figures = await inTurn(rounds, { refold: turn('inline', inline), limit: turn('plain', plain) });

    const [row] = await inline.db.query<{ events: number; items: number }>({
      text: `
        select
          (select count(*)::int from refold.events) as events,
          (select sum(items)::int from read_models.cart_summary_inline_v1) as items`,
    });
    check(row?.events === calls.inline, () => `${calls.inline} appends, ${row?.events} events`);
    check(row.items === row.events, () => `${row.events} events, ${row.items} of them in the rows`);
    for (const runtime of runtimes) await runtime.stop();
    return [
      {
        scenario: appendInline.name,
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'the same append without an inline projection',
        target: { toLimit: 0.6 },
      },
    ];
  },
};
