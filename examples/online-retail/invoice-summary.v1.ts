import { decimal, defineProjection, type RowOf, t } from '../../src/index.ts';
import { amountOf } from './amounts.ts';
import { type InvoiceLine, invoice } from './events.ts';

const table = {
  invoiceNo: t.text().primaryKey(),
  customerId: t.text().nullable().index(),
  country: t.text().index(),
  isCancellation: t.boolean(),
  lines: t.integer(),
  units: t.integer(),
  total: t.decimal(16, 3),
  firstLineAt: t.text().describe("The shop's local time, to the minute."),
  lastLineAt: t.text(),
};

export const invoiceSummaryV1 = defineProjection({
  name: 'invoice_summary',
  version: 1,
  events: invoice,
  table,
  key: (event) => event.streamId,
  evolve: {
    ItemInvoiced: (summary, { payload }) => withLine(summary, payload),
    ItemReturned: (summary, { payload }) => ({ ...withLine(summary, payload), isCancellation: true }),
    StockWrittenOff: (summary, { payload }) => withLine(summary, payload),
    DebtAdjusted: (summary, { payload }) => withLine(summary, payload),
  },
});

function withLine(summary: RowOf<typeof table> | null, line: InvoiceLine) {
  return {
    customerId: line.customerId,
    country: line.country,
    isCancellation: summary?.isCancellation ?? false,
    lines: (summary?.lines ?? 0) + 1,
    units: (summary?.units ?? 0) + line.quantity,
    total: amountOf(line).plus(summary?.total ?? decimal(0)),
    firstLineAt: summary?.firstLineAt ?? line.invoicedAt,
    lastLineAt: line.invoicedAt,
  };
}
