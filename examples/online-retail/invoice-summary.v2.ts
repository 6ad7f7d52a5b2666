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
  unitsReturned: t.integer(),
  total: t.decimal(16, 3).index(),
  firstLineAt: t.text().describe("The shop's local time, to the minute."),
  lastLineAt: t.text(),
  largestLines: t
    .list(t.object({ line: t.integer(), stockCode: t.text(), quantity: t.integer(), amount: t.decimal(16, 3) }))
    .describe('The three lines with the highest amounts, the highest first; returns count as negative.'),
};

export const invoiceSummaryV2 = defineProjection({
  name: 'invoice_summary',
  version: 2,
  events: invoice,
  table,
  key: (event) => event.streamId,
  evolve: {
    ItemInvoiced: (summary, { payload }) => withLine(summary, payload),
    ItemReturned: (summary, { payload }) => ({
      ...withLine(summary, payload),
      isCancellation: true,
      unitsReturned: (summary?.unitsReturned ?? 0) - payload.quantity,
    }),
    StockWrittenOff: (summary, { payload }) => withLine(summary, payload),
    DebtAdjusted: (summary, { payload }) => withLine(summary, payload),
  },
});

function withLine(summary: RowOf<typeof table> | null, line: InvoiceLine) {
  const amount = amountOf(line);
  return {
    customerId: line.customerId,
    country: line.country,
    isCancellation: summary?.isCancellation ?? false,
    lines: (summary?.lines ?? 0) + 1,
    units: (summary?.units ?? 0) + line.quantity,
    unitsReturned: summary?.unitsReturned ?? 0,
    total: amount.plus(summary?.total ?? decimal(0)),
    firstLineAt: summary?.firstLineAt ?? line.invoicedAt,
    lastLineAt: line.invoicedAt,
    largestLines: [
      ...(summary?.largestLines ?? []),
      { line: line.line, stockCode: line.stockCode, quantity: line.quantity, amount },
    ]
      .sort((a, b) => b.amount.cmp(a.amount) || a.line - b.line)
      .slice(0, 3),
  };
}
