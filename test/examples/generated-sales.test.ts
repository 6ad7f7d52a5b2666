import { expect, test } from 'vitest';
import { generateSales } from '../../examples/online-retail/generated-sales.ts';

interface Row {
  readonly InvoiceNo: string;
  readonly StockCode: string;
  readonly Description: string | null;
  readonly Quantity: number;
  readonly InvoiceDate: string;
  readonly UnitPrice: number;
  readonly CustomerID: string | null;
  readonly Country: string;
}

const lines = generateSales(1, 2_000);
const rows: readonly Row[] = lines.map((line) => JSON.parse(line));

test('a generated file is the same for the same seed, and differs for another', () => {
  expect(generateSales(1, 2_000)).toEqual(lines);
  expect(generateSales(2, 2_000)).not.toEqual(lines);
});

test.each<[string, (row: Row, index: number) => boolean]>([
  ['lines that repeat the one before exactly', (_, index) => lines[index] === lines[index - 1]],
  ['cancellations', (row) => row.InvoiceNo.startsWith('C') && row.Quantity < 0],
  [
    'write-offs',
    (row) => /^\d/.test(row.InvoiceNo) && row.Quantity < 0 && row.UnitPrice === 0 && row.CustomerID === null,
  ],
  ['bad debts with a negative price', (row) => row.InvoiceNo.startsWith('A') && row.UnitPrice < 0],
  ['lines without a customer', (row) => row.CustomerID === null],
  ['lines without a description', (row) => row.Description === null],
  ['descriptions with stray blanks', (row) => row.Description !== null && row.Description !== row.Description.trim()],
  ['descriptions with escapes', (_, index) => lines[index]?.includes('\\') === true],
  ['stock codes with a lower-case suffix', (row) => /\d[a-z]$/.test(row.StockCode)],
  ['stock codes that are not products', (row) => row.StockCode === 'POST'],
  ['huge quantities', (row) => Math.abs(row.Quantity) === 80_995],
  ['prices with three decimals', (row) => row.UnitPrice === 1.005],
  ['free items', (row) => row.Quantity > 0 && row.UnitPrice === 0],
])('a generated file has %s', (_, quirk) => {
  expect(rows.some(quirk)).toBe(true);
});

test('a generated file has a customer of two countries, an invoice of two minutes, a long one, and an interrupted one', () => {
  expect(new Set(rows.filter((row) => row.CustomerID === '12370').map((row) => row.Country)).size).toBe(2);
  const invoices = Map.groupBy(rows, (row) => row.InvoiceNo);
  expect([...invoices.values()].some((lines) => lines[0]?.InvoiceDate !== lines.at(-1)?.InvoiceDate)).toBe(true);
  expect(Math.max(...[...invoices.values()].map((lines) => lines.length))).toBeGreaterThan(400);
  const begins = rows.filter((row, index) => row.InvoiceNo !== rows[index - 1]?.InvoiceNo);
  expect(begins.length).toBeGreaterThan(invoices.size);
});

test('a generated file never goes back in time', () => {
  const times = rows.map((row) => row.InvoiceDate);
  expect(times).toEqual([...times].sort());
});
