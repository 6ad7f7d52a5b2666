import { buildByRefold } from '../build.ts';
import { forgetReadModels } from '../cart-log.ts';
import { cartSummary, groupTotals, productSales } from '../carts.ts';
import { check } from '../check.ts';
import { openClient } from '../open-client.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

/** Three new versions at once, which share one read of the log, compared with one of them alone. */
export const threeProjections: Scenario = {
  name: 'three-projections',
  async run({ server, rounds, longLog }) {
    const { url, events } = await longLog();
    const client = await openClient(url);
    const sums = async (text: string) => (await client.query<{ n: number }>(text)).rows[0]?.n;
    const figures = await inTurn(rounds, {
      async refold() {
        await forgetReadModels(client);
        await server.settle();
        const seconds = await buildByRefold(url, [cartSummary, groupTotals, productSales]);
        const items = await sums('select sum(items)::int as n from read_models.cart_summary');
        check(items !== undefined && items > 0, () => 'cart_summary is empty');
        for (const sum of ['sum(items) from read_models.group_totals', 'sum(sold) from read_models.product_sales']) {
          const other = await sums(`select ${sum.replace(')', ')::int as n')}`);
          check(other === items, () => `${items} items in cart_summary, but ${other} is the ${sum}`);
        }
        return events / seconds;
      },
      async limit() {
        await forgetReadModels(client);
        await server.settle();
        return events / (await buildByRefold(url, [cartSummary]));
      },
    });
    await client.end();
    return [
      {
        scenario: 'three-projections',
        unit: 'events/s',
        better: 'more',
        refold: figures.refold ?? [],
        limit: figures.limit,
        limitName: 'one projection alone',
        target: { toLimit: 0.6 },
      },
    ];
  },
};
