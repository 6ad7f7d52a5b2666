import type { Projection } from '../../src/index.ts';
import { buildByRefold } from '../build.ts';
import { forgetReadModels } from '../cart-log.ts';
import { cartSummaryBySql, productSalesBySql } from '../carts.ts';
import { check } from '../check.ts';
import {
  type BatchesBySql,
  buildInBatches,
  cartSummaryBatches,
  productSalesBatches,
} from '../limits/set-based-batches.ts';
import { openClient } from '../open-client.ts';
import { inTurn } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

// As many as a batch of Refold's while it builds.
const batchSize = 100_000;

/** New versions with `evolveSql`: a row for each stream, and a hundred hot rows. */
export const evolveSql: readonly Scenario[] = [
  scenario('evolve-sql-streams', cartSummaryBySql, cartSummaryBatches),
  scenario('evolve-sql-hot-keys', productSalesBySql, productSalesBatches),
];

function scenario(name: string, projection: Projection, byHand: BatchesBySql): Scenario {
  return {
    name,
    async run({ server, rounds, longLog }) {
      const { url, events } = await longLog();
      const client = await openClient(url);
      const figures = await inTurn(rounds, {
        async refold() {
          await forgetReadModels(client);
          await server.settle();
          return events / (await buildByRefold(url, [projection]));
        },
        async limit() {
          await server.settle();
          return events / (await buildInBatches(client, byHand, batchSize));
        },
      });
      const table = `read_models.${projection.name}`;
      const { rows } = await client.query<{ n: number }>(`
        select count(*)::int as n
        from (
          (table ${byHand.table} except all table ${table})
          union all
          (table ${table} except all table ${byHand.table})
        ) different`);
      check(rows[0]?.n === 0, () => `${rows[0]?.n} rows differ from those of the SQL by hand`);
      await client.end();
      return [
        {
          scenario: name,
          unit: 'events/s',
          better: 'more',
          refold: figures.refold ?? [],
          limit: figures.limit,
          limitName: 'the same SQL by hand',
          target: { toLimit: 0.8 },
        },
      ];
    },
  };
}
