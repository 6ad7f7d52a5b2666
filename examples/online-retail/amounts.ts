import { type Decimal, decimal } from '../../src/index.ts';
import type { InvoiceLine } from './events.ts';

/** The amount of a line; negative for returned goods. */
export function amountOf(line: InvoiceLine): Decimal {
  return decimal(line.unitPrice).times(line.quantity);
}

export function dayOf(line: InvoiceLine): string {
  return line.invoicedAt.slice(0, 10);
}
