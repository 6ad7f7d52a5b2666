import { defineConfig } from '../../../src/index.ts';
import { invoiceSummaryV1 } from '../invoice-summary.v1.ts';
import { retailImport } from '../retail-import.ts';

/** The first release of docs/retail.md. */
export default defineConfig({
  projections: [invoiceSummaryV1],
  imports: [retailImport],
  gateway: { graphiql: true },
});
