import type { Projection } from '../../src/index.ts';
import { buildBesideSql } from '../build-beside-sql.ts';
import { cartLines, cartSummaryBySql, productSalesBySql } from '../carts.ts';
import { cartSummaryBatches, productSalesBatches } from '../limits/set-based-batches.ts';
import { cartLinesBySql, type SqlBuild } from '../limits/set-based-build.ts';
import type { Result, Scenario } from '../scenario.ts';

/** New versions over a long log, each of another shape. */
export const builds: readonly Scenario[] = [
  building('build-row-per-event', cartLines, cartLinesBySql, {
    limitName: 'INSERT … SELECT',
    target: { toLimit: 0.4 },
  }),
  building('evolve-sql-streams', cartSummaryBySql, cartSummaryBatches, {
    limitName: 'the same SQL by hand',
    target: { toLimit: 0.8 },
  }),
  building('evolve-sql-hot-keys', productSalesBySql, productSalesBatches, {
    limitName: 'the same SQL by hand',
    target: { toLimit: 0.8 },
  }),
];

function building(
  name: string,
  projection: Projection,
  bySql: SqlBuild,
  judged: Pick<Result, 'limitName' | 'target'>,
): Scenario {
  return {
    name,
    async run(context) {
      const { refold = [], limit } = await buildBesideSql(context, projection, bySql);
      return [{ scenario: name, unit: 'events/s', better: 'more', refold, limit, ...judged }];
    },
  };
}
