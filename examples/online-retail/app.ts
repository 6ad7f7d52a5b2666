import { defineConfig } from '../../src/index.ts';
import { customerLifetimeValueV1 } from './customer-lifetime-value.v1.ts';
import { invoiceSummaryV1 } from './invoice-summary.v1.ts';
import { invoiceSummaryV2 } from './invoice-summary.v2.ts';
import { productSalesByDayV1 } from './product-sales-by-day.v1.ts';
import { retailImport } from './retail-import.ts';

export default defineConfig({
  projections: [invoiceSummaryV1, invoiceSummaryV2, customerLifetimeValueV1, productSalesByDayV1],
  imports: [retailImport],
});
