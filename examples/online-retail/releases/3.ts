import { defineConfig } from '../../../src/index.ts';
import { invoiceSummaryV2 } from '../invoice-summary.v2.ts';
import { retailImport } from '../retail-import.ts';

/** The third release: the first version is retired. */
export default defineConfig({
  projections: [invoiceSummaryV2],
  imports: [retailImport],
  gateway: { graphiql: true },
});
