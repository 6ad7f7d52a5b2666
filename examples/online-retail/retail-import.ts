import { decimal, defineImport, type ImportedAppend, type NewEventOf } from '../../src/index.ts';
import { type InvoiceLine, invoice } from './events.ts';

// Most invoices fit (the mean is 21 lines); the longest, of 1,114 lines, should not become one large statement.
const maxEventsAtOnce = 200;

/**
 * The lines of the UCI "Online Retail" data set, one JSON object each, in their order; neighbouring lines of one invoice are appended together.
 * The grouping depends only on the lines, so a second run, or a run after a crash, duplicates nothing.
 * Holds one number per invoice in memory.
 */
export const retailImport = defineImport({
  name: 'online-retail',
  description: 'The UCI "Online Retail" data set as JSON lines.',
  async *toAppends(lines) {
    const linesBefore = new Map<string, number>();
    let invoiceNo = '';
    let events: NewEventOf<typeof invoice>[] = [];
    const append = (): ImportedAppend => {
      const before = linesBefore.get(invoiceNo) ?? 0;
      linesBefore.set(invoiceNo, before + events.length);
      return {
        family: invoice,
        streamId: invoiceNo,
        events,
        expectedVersion: before,
        idempotencyKey: `online-retail:${invoiceNo}:${before + 1}`,
      };
    };

    for await (const { text } of lines) {
      const row = parseRow(text);
      if (events.length > 0 && (row.InvoiceNo !== invoiceNo || events.length === maxEventsAtOnce)) {
        yield append();
        events = [];
      }
      invoiceNo = row.InvoiceNo;
      const line = (linesBefore.get(invoiceNo) ?? 0) + events.length + 1;
      events.push({ type: eventType(row), payload: toLine(row, line) });
    }
    if (events.length > 0) yield append();
  },
});

interface Row {
  readonly InvoiceNo: string;
  readonly StockCode: string;
  readonly Description: string | null;
  readonly Quantity: string;
  readonly InvoiceDate: string;
  readonly UnitPrice: string;
  readonly CustomerID: string | null;
  readonly Country: string;
}

/** Numbers stay the text of the file: a price must not become a float on its way to a decimal. */
function parseRow(text: string): Row {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
}

function toLine(row: Row, line: number): InvoiceLine {
  return {
    line,
    stockCode: row.StockCode,
    description: row.Description,
    quantity: Number(row.Quantity),
    unitPrice: decimal(row.UnitPrice).toFixed(),
    invoicedAt: row.InvoiceDate.replace(' ', 'T'),
    customerId: row.CustomerID,
    country: row.Country,
  };
}

function eventType(row: Row): 'ItemInvoiced' | 'ItemReturned' | 'StockWrittenOff' | 'DebtAdjusted' {
  if (row.InvoiceNo.startsWith('C')) return 'ItemReturned';
  if (row.InvoiceNo.startsWith('A')) return 'DebtAdjusted';
  return row.Quantity.startsWith('-') ? 'StockWrittenOff' : 'ItemInvoiced';
}
