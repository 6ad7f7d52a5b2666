import { decimal, defineProjection, type RowOf, t } from '../../src/index.ts';
import { amountOf } from './amounts.ts';
import { type InvoiceLine, invoice } from './events.ts';

const table = {
  customerId: t.text().primaryKey(),
  country: t.text().index().describe('Of the latest line: a few customers have moved.'),
  invoices: t.integer(),
  cancellations: t.integer(),
  gross: t.decimal(16, 3),
  returned: t.decimal(16, 3),
  net: t.decimal(16, 3).index(),
  lastPurchaseAt: t.text().nullable().index().describe("The shop's local time; null where there are returns only."),
};

export const customerLifetimeValueV1 = defineProjection({
  name: 'customer_lifetime_value',
  version: 1,
  events: invoice,
  table,
  /** A quarter of the lines name no customer; they touch no row. */
  key: (event) => event.payload.customerId,
  evolve: {
    ItemInvoiced: (value, { payload }) => {
      const before = value ?? newCustomer;
      return {
        ...before,
        country: payload.country,
        invoices: before.invoices + countOnce(payload),
        gross: before.gross.plus(amountOf(payload)),
        net: before.net.plus(amountOf(payload)),
        lastPurchaseAt: payload.invoicedAt,
      };
    },
    ItemReturned: (value, { payload }) => {
      const before = value ?? newCustomer;
      return {
        ...before,
        country: payload.country,
        cancellations: before.cancellations + countOnce(payload),
        returned: before.returned.minus(amountOf(payload)),
        net: before.net.plus(amountOf(payload)),
      };
    },
  },
});

const none = decimal(0);
const newCustomer: Omit<RowOf<typeof table>, 'customerId' | 'country'> = {
  invoices: 0,
  cancellations: 0,
  gross: none,
  returned: none,
  net: none,
  lastPurchaseAt: null,
};

/** An invoice counts once, with its first line. */
function countOnce(line: InvoiceLine): 0 | 1 {
  return line.line === 1 ? 1 : 0;
}
