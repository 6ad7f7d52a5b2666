import { defineConfig } from '../../../src/index.ts';
import { invoiceSummaryV1 } from '../invoice-summary.v1.ts';
import { invoiceSummaryV2 } from '../invoice-summary.v2.ts';
import { retailImport } from '../retail-import.ts';

/** The second release: both versions. */
export default defineConfig({
  projections: [invoiceSummaryV1, invoiceSummaryV2],
  imports: [retailImport],
  gateway: { graphiql: true },
});
