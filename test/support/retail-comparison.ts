import { isDeepStrictEqual } from 'node:util';
import { decimal, isDecimal } from '../../src/projections/columns/decimal.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { RetailOracle } from './retail-oracle.ts';

/**
 * Compares all read models of the online retail example with the oracle. Returns one line for each of the first differences
 * of each read model, or none if all are equal.
 */
export function differencesFromOracle(rowsOf: (projectionId: string) => Iterable<Row>, oracle: RetailOracle): string[] {
  const table = (id: string, key: (row: Row) => string, leaveOut: readonly string[]) =>
    new Map([...rowsOf(id)].map((row) => [key(row), plain(omit(row, leaveOut))]));
  const invoiceNo = (row: Row) => String(row.invoiceNo);
  const onlyInV2 = ['unitsReturned', 'largestLines'];
  const invoicesOfV1 = new Map([...oracle.invoices].map(([key, row]) => [key, omit(row, onlyInV2)]));

  return [
    ...differences('invoice_summary@1', table('invoice_summary@1', invoiceNo, ['invoiceNo']), invoicesOfV1),
    ...differences('invoice_summary@2', table('invoice_summary@2', invoiceNo, ['invoiceNo']), oracle.invoices),
    ...differences(
      'customer_lifetime_value@1',
      table('customer_lifetime_value@1', (row) => String(row.customerId), ['customerId']),
      oracle.customers,
    ),
    ...differences(
      'product_sales_by_day@1',
      table('product_sales_by_day@1', (row) => `${row.stockCode}/${row.day}`, ['stockCode', 'day']),
      oracle.productDays,
    ),
    ...differences('total by country', totalByCountry(rowsOf('invoice_summary@1')), oracle.totalByCountry),
  ];
}

// A wrong fold differs in many rows; the first few show why.
const maxDifferences = 3;

function differences(
  name: string,
  found: ReadonlyMap<string, unknown>,
  expected: ReadonlyMap<string, unknown>,
): string[] {
  const keys = new Set([...expected.keys(), ...found.keys()]);
  const different = [...keys].filter((key) => !isDeepStrictEqual(found.get(key), expected.get(key)));
  return different
    .slice(0, maxDifferences)
    .map(
      (key) =>
        `${name}, ${key}: expected ${JSON.stringify(expected.get(key))}, found ${JSON.stringify(found.get(key))}`,
    );
}

function totalByCountry(invoices: Iterable<Row>): ReadonlyMap<string, string> {
  const totals = new Map<string, ReturnType<typeof decimal>>();
  for (const { country, total } of invoices) {
    if (typeof country !== 'string' || !isDecimal(total)) throw new Error('an invoice without a country or a total');
    totals.set(country, total.plus(totals.get(country) ?? decimal(0)));
  }
  return new Map([...totals].map(([country, total]) => [country, total.toFixed(3)]));
}

function omit(row: object, columns: readonly string[]): object {
  return Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)));
}

/** Decimals as text with three digits, as the oracle writes them. */
function plain(value: unknown): unknown {
  if (isDecimal(value)) return value.toFixed(3);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}
