import { decimal, defineProjection, type RowOf, t } from '../../src/index.ts';
import { amountOf, dayOf } from './amounts.ts';
import { type InvoiceLine, invoice } from './events.ts';

const table = {
  stockCode: t.text().primaryKey().describe("'*' for all products together."),
  day: t.date().primaryKey(),
  lines: t.integer(),
  unitsSold: t.integer(),
  unitsReturned: t.integer(),
  revenue: t.decimal(16, 3).index().describe('Sold less returned.'),
};

/** Each line touches two rows: its product's day, and the day of all products. The day is the day of sale, however late it is recorded. */
export const productSalesByDayV1 = defineProjection({
  name: 'product_sales_by_day',
  version: 1,
  events: invoice,
  table,
  key: ({ payload }) => [
    { stockCode: payload.stockCode, day: dayOf(payload) },
    { stockCode: '*', day: dayOf(payload) },
  ],
  evolve: {
    ItemInvoiced: (sales, { payload }) => withLine(sales, payload, { sold: payload.quantity, returned: 0 }),
    ItemReturned: (sales, { payload }) => withLine(sales, payload, { sold: 0, returned: -payload.quantity }),
  },
});

function withLine(sales: RowOf<typeof table> | null, line: InvoiceLine, units: { sold: number; returned: number }) {
  return {
    lines: (sales?.lines ?? 0) + 1,
    unitsSold: (sales?.unitsSold ?? 0) + units.sold,
    unitsReturned: (sales?.unitsReturned ?? 0) + units.returned,
    revenue: amountOf(line).plus(sales?.revenue ?? decimal(0)),
  };
}
