import { decimal, type ExpectedVersion, type NewEventOf } from '../../src/index.ts';
import type { InvoiceLine, invoice } from './events.ts';

/** One append of the import: neighbouring lines of one invoice. */
export interface InvoiceAppend {
  readonly family: 'invoice';
  readonly streamId: string;
  readonly events: readonly NewEventOf<typeof invoice>[];
  /** The lines before these are in the log already, whatever was written of the rest. */
  readonly expectedVersion: ExpectedVersion;
  /** The same for the same lines in every run, so that a second run, or one after a crash, doubles nothing. */
  readonly idempotencyKey: string;
}

// Most invoices fit (the mean is 21 lines); the longest, of 1,114, should not become one large statement.
const mostEventsAtOnce = 200;

/**
 * The lines of the UCI "Online Retail" data set, one JSON object each, as appends in the order of the lines.
 * How they are grouped depends on the lines alone. Holds one number per invoice in memory.
 */
export async function* toAppends(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<InvoiceAppend> {
  const linesBefore = new Map<string, number>();
  let invoiceNo = '';
  let events: NewEventOf<typeof invoice>[] = [];
  const append = (): InvoiceAppend => {
    const before = linesBefore.get(invoiceNo) ?? 0;
    linesBefore.set(invoiceNo, before + events.length);
    const idempotencyKey = `online-retail:${invoiceNo}:${before + 1}`;
    return { family: 'invoice', streamId: invoiceNo, events, expectedVersion: before, idempotencyKey };
  };

  for await (const text of lines) {
    if (text.trim() === '') continue;
    const row = parseRow(text);
    if (events.length > 0 && (row.InvoiceNo !== invoiceNo || events.length === mostEventsAtOnce)) {
      yield append();
      events = [];
    }
    invoiceNo = row.InvoiceNo;
    const line = (linesBefore.get(invoiceNo) ?? 0) + events.length + 1;
    events.push({ type: eventType(row), payload: toLine(row, line) });
  }
  if (events.length > 0) yield append();
}

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

/** Numbers come as the text that stands in the file: a price must not become a float on its way to a decimal. */
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
