import { randomNumbers } from '../shopping-cart/random-numbers.ts';

interface Invoice {
  readonly number: string;
  readonly customer: string | null;
  readonly country: string;
}

/**
 * At least `rows` lines in the form of the real file, with everything that makes it hard: exact duplicate lines that count separately,
 * an invoice longer than one append, one that spans two minutes, one that continues after another began, cancellations that name no
 * sale, write-offs without customer and price, adjustments of bad debts, missing and untrimmed descriptions, several descriptions
 * of one product, lower-case suffixes, codes that are not products, a customer who moves, huge quantities that are returned, and prices with
 * three decimals, or none, that floats add up wrongly.
 */
export function generateSales(seed: number, rows: number): readonly string[] {
  const random = randomNumbers(seed);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T; // below length
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const lines: string[] = [];
  let nextNumber = 536_365;
  let minute = Date.UTC(2010, 11, 1, 8, 26);

  const newInvoice = (prefix = '', customer = random() < 0.25 ? null : pick(customers)): Invoice => {
    if (random() < 0.02) minute += between(1, 5) * 86_400_000;
    minute += between(0, 20) * 60_000;
    const moved = customer === '12370' && random() < 0.5;
    return { number: `${prefix}${nextNumber++}`, customer, country: moved ? 'Cyprus' : countryOf(customer) };
  };
  const write = (invoice: Invoice, line: Partial<Line>) => {
    const stockCode = line.StockCode ?? pick(stockCodes);
    const InvoiceDate = new Date(minute).toISOString().slice(0, 19).replace('T', ' ');
    const description = line.Description === undefined ? pick(descriptionsOf(stockCode)) : line.Description;
    lines.push(
      [
        `{"InvoiceNo":${JSON.stringify(invoice.number)}`,
        `"StockCode":${JSON.stringify(stockCode)}`,
        `"Description":${JSON.stringify(description)}`,
        `"Quantity":${line.Quantity ?? between(1, 48)}`,
        `"InvoiceDate":"${InvoiceDate}"`,
        `"UnitPrice":${line.UnitPrice ?? pick(prices)}`,
        `"CustomerID":${JSON.stringify(invoice.customer)}`,
        `"Country":${JSON.stringify(invoice.country)}}`,
      ].join(','),
    );
  };
  const writeMany = (invoice: Invoice, count: number) => {
    for (let written = 0; written < count; written++) {
      write(invoice, {});
      if (random() < 0.05) lines.push(lines.at(-1) as string); // just written
    }
  };

  const scenes: readonly (() => void)[] = [
    () => writeMany(newInvoice(), between(1, 40)),
    () => writeMany(newInvoice(), between(1, 12)),
    () => writeMany(newInvoice(), 1),
    function cancellation() {
      const invoice = newInvoice('C', random() < 0.04 ? null : pick(customers));
      for (let left = between(1, 4); left > 0; left--) write(invoice, { Quantity: -between(1, 24) });
    },
    function writeOff() {
      write(newInvoice('', null), {
        Quantity: -between(1, 3000),
        UnitPrice: '0',
        Description: pick(['check', 'damages', '?', null]),
      });
    },
    function spanningTwoMinutes() {
      const invoice = newInvoice();
      writeMany(invoice, between(1, 9));
      minute += 60_000;
      writeMany(invoice, between(1, 9));
    },
    function comingBack() {
      const invoice = newInvoice();
      writeMany(invoice, between(1, 9));
      writeMany(newInvoice(), between(1, 5));
      writeMany(invoice, between(1, 9));
    },
  ];

  writeMany(newInvoice(), 450);
  const badDebts = { StockCode: 'B', Description: 'Adjust bad debt', Quantity: 1 };
  for (const UnitPrice of ['11062.06', '-11062.06', '-11062.06']) {
    write({ ...newInvoice('A', null), country: 'United Kingdom' }, { ...badDebts, UnitPrice });
  }
  for (const prefix of ['', 'C']) {
    write(newInvoice(prefix, '16446'), {
      StockCode: '23843',
      Quantity: prefix === 'C' ? -80_995 : 80_995,
      UnitPrice: '2.08',
    });
  }
  for (const scene of scenes) scene();
  while (lines.length < rows) pick(scenes)();
  return lines;
}

interface Line {
  readonly StockCode: string;
  readonly Description: string | null;
  readonly Quantity: number;
  /** The text as it will stand in the file. */
  readonly UnitPrice: string;
}

const customers = ['12346', '12370', '13047', '14911', '16446', '17850', '18102'];
const stockCodes = [
  '85123A',
  '85123a',
  '71053',
  '84406B',
  '23843',
  '22423',
  'POST',
  'DOT',
  'M',
  'm',
  'C2',
  'D',
  'S',
  'BANK CHARGES',
  'AMAZONFEE',
  'CRUK',
  'gift_0001_20',
];
const prices = [
  '0.1',
  '0.2',
  '0.3',
  '2.55',
  '3.39',
  '1.005',
  '0.001',
  '0.29',
  '8.95',
  '4',
  '0',
  '13541.33',
  '0.07',
  '1.15',
];

function countryOf(customer: string | null): string {
  if (customer === '14911') return 'EIRE';
  return customer === '13047' ? 'France' : 'United Kingdom';
}

function descriptionsOf(stockCode: string): readonly (string | null)[] {
  return [` ${stockCode} LANTERN `, `${stockCode} "RETRO" LANTERN`, `${stockCode} lantern, 1/2 £ ☂`, null];
}
