import { z } from 'zod';
import { defineEvents, type PayloadOf } from '../../src/index.ts';

const line = z.object({
  /** 1, 2, 3… in its invoice. The source has no line id, and lines with the same content are separate lines. */
  line: z.int().min(1),
  stockCode: z.string(),
  /** As in the source: with its stray blanks, sometimes missing. */
  description: z.string().nullable(),
  /** Negative for goods that came back or were written off. */
  quantity: z.int(),
  /** An exact decimal; negative in some adjustments of bad debts. */
  unitPrice: z.string().regex(/^-?\d{1,12}(\.\d{1,3})?$/),
  /** To the minute, in the shop's local time. The source names no time zone, so this is not an instant. */
  invoicedAt: z.iso.datetime({ local: true }),
  customerId: z.string().nullable(),
  country: z.string(),
});

/** One stream per invoice; its id is the invoice's number. */
export const invoice = defineEvents('invoice', {
  ItemInvoiced: line,
  ItemReturned: line,
  /** Broken, lost, counted again: no customer, no price. */
  StockWrittenOff: line,
  DebtAdjusted: line,
});

export type InvoiceLine = PayloadOf<typeof invoice, 'ItemInvoiced'>;
