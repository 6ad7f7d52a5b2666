import type { Projection } from '../../src/index.ts';
import { buildBesideSql } from '../build-beside-sql.ts';
import { cartDocument, hotGroups, salesBy } from '../cart-shapes.ts';
import { cartLines, cartSummaryBySql, productSalesBySql } from '../carts.ts';
import { cartSummaryBatches, productSalesBatches } from '../limits/set-based-batches.ts';
import {
  cartDocumentBySql,
  cartLinesBySql,
  hotGroupsBySql,
  type SqlBuild,
  salesByBySql,
} from '../limits/set-based-build.ts';
import type { Result, Scenario } from '../scenario.ts';

/** New versions over a long log, each of a different shape. */
export const builds: readonly Scenario[] = [
  building('build-row-per-event', cartLines, cartLinesBySql, {
    limitName: 'INSERT … SELECT',
    target: { toLimit: 0.4 },
  }),
  inFull('build-hot-keys', hotGroups, hotGroupsBySql),
  inFull('build-multi-key', salesBy, salesByBySql),
  inFull('build-nested-document', cartDocument, cartDocumentBySql),
  building('evolve-sql-streams', cartSummaryBySql, cartSummaryBatches, {
    limitName: 'the same SQL by hand',
    target: { toLimit: 0.8 },
  }),
  building('evolve-sql-hot-keys', productSalesBySql, productSalesBatches, {
    limitName: 'the same SQL by hand',
    target: { toLimit: 0.8 },
  }),
];

/** Only for the full run, without a target. */
function inFull(name: string, projection: Projection, bySql: SqlBuild): Scenario {
  return { ...building(name, projection, bySql, { limitName: 'one SQL statement', target: {} }), fullOnly: true };
}

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
