/**
 * The expected read models of the online retail example, computed directly from the file's text: no code of the project, and
 * bigints of thousandths instead of decimals.
 */
export interface RetailOracle {
  readonly lines: number;
  /** sum(Quantity × UnitPrice) over all lines. */
  readonly total: string;
  readonly totalByCountry: ReadonlyMap<string, string>;
  /** By invoice number. */
  readonly invoices: ReadonlyMap<string, object>;
  /** By customer. */
  readonly customers: ReadonlyMap<string, object>;
  /** By `stock code/day`. */
  readonly productDays: ReadonlyMap<string, object>;
}

export async function computeRetailOracle(lines: AsyncIterable<string> | Iterable<string>): Promise<RetailOracle> {
  const invoices = new Map<string, Invoice>();
  const customers = new Map<string, Customer>();
  const productDays = new Map<string, ProductDay>();
  const countries = new Map<string, bigint>();
  let count = 0;
  let total = 0n;

  for await (const text of lines) {
    const line = parse(text);
    const kind =
      line.invoiceNo[0] === 'C' ? 'return' : line.invoiceNo[0] === 'A' ? 'debt' : line.quantity < 0n ? 'loss' : 'sale';
    count++;
    total += line.amount;
    countries.set(line.country, (countries.get(line.country) ?? 0n) + line.amount);

    const invoice = known(invoices, line.invoiceNo, () => ({
      customerId: line.customerId,
      country: line.country,
      from: line.at,
      to: line.at,
      lines: [],
    }));
    invoice.to = line.at;
    invoice.lines.push(line);

    if (kind === 'debt' || kind === 'loss') continue;
    for (const code of [line.stockCode, '*']) {
      const day = known(productDays, `${code}/${line.at.slice(0, 10)}`, () => ({
        lines: 0,
        sold: 0n,
        returned: 0n,
        revenue: 0n,
      }));
      day.lines++;
      day.revenue += line.amount;
      if (kind === 'sale') day.sold += line.quantity;
      else day.returned -= line.quantity;
    }
    if (line.customerId === null) continue;
    const customer = known(customers, line.customerId, () => ({
      country: '',
      invoices: new Set<string>(),
      cancellations: new Set<string>(),
      gross: 0n,
      returned: 0n,
      last: null,
    }));
    customer.country = line.country;
    if (kind === 'sale') {
      customer.invoices.add(line.invoiceNo);
      customer.gross += line.amount;
      customer.last = line.at;
    } else {
      customer.cancellations.add(line.invoiceNo);
      customer.returned -= line.amount;
    }
  }

  return {
    lines: count,
    total: inThousandths(total),
    totalByCountry: mapped(countries, inThousandths),
    invoices: mapped(invoices, invoiceRow),
    customers: mapped(customers, customerRow),
    productDays: mapped(productDays, ({ lines, sold, returned, revenue }) => ({
      lines,
      unitsSold: Number(sold),
      unitsReturned: Number(returned),
      revenue: inThousandths(revenue),
    })),
  };
}

interface Line {
  readonly invoiceNo: string;
  readonly stockCode: string;
  readonly quantity: bigint;
  readonly at: string;
  readonly amount: bigint;
  readonly customerId: string | null;
  readonly country: string;
}

interface Invoice {
  readonly customerId: string | null;
  readonly country: string;
  readonly from: string;
  to: string;
  readonly lines: Line[];
}

interface Customer {
  country: string;
  readonly invoices: Set<string>;
  readonly cancellations: Set<string>;
  gross: bigint;
  returned: bigint;
  last: string | null;
}

interface ProductDay {
  lines: number;
  sold: bigint;
  returned: bigint;
  revenue: bigint;
}

function invoiceRow({ customerId, country, from, to, lines }: Invoice): object {
  const sum = (amountOf: (line: Line) => bigint) => lines.reduce((before, line) => before + amountOf(line), 0n);
  const isCancellation = lines[0]?.invoiceNo[0] === 'C';
  const units = sum((line) => line.quantity);
  const ranked = lines
    .map(({ stockCode, quantity, amount }, index) => ({ line: index + 1, stockCode, quantity, amount }))
    .sort((a, b) => (a.amount === b.amount ? a.line - b.line : a.amount < b.amount ? 1 : -1));
  return {
    customerId,
    country,
    isCancellation,
    lines: lines.length,
    units: Number(units),
    unitsReturned: isCancellation ? Number(-units) : 0,
    total: inThousandths(sum((line) => line.amount)),
    firstLineAt: from,
    lastLineAt: to,
    largestLines: ranked.slice(0, 3).map(({ quantity, amount, ...line }) => ({
      ...line,
      quantity: Number(quantity),
      amount: inThousandths(amount),
    })),
  };
}

function customerRow({ country, invoices, cancellations, gross, returned, last }: Customer): object {
  return {
    country,
    invoices: invoices.size,
    cancellations: cancellations.size,
    gross: inThousandths(gross),
    returned: inThousandths(returned),
    net: inThousandths(gross - returned),
    lastPurchaseAt: last,
  };
}

const pattern = new RegExp(
  [
    '^\\{"InvoiceNo":"(\\w+)"',
    '"StockCode":"([^"\\\\]+)"',
    '"Description":(?:null|"(?:[^"\\\\]|\\\\.)*")',
    '"Quantity":(-?\\d+)',
    '"InvoiceDate":"(\\d{4}-\\d{2}-\\d{2}) (\\d{2}:\\d{2}:\\d{2})"',
    '"UnitPrice":(-?)(\\d+)(?:\\.(\\d{1,3}))?',
    '"CustomerID":(?:null|"(\\d+)")',
    '"Country":"([^"\\\\]+)"\\}$',
  ].join(','),
);

function parse(text: string): Line {
  const match = pattern.exec(text);
  if (!match) throw new Error(`The oracle can't read this line: ${text}`);
  const [
    ,
    invoiceNo = '',
    stockCode = '',
    units = '',
    day,
    time,
    sign,
    whole,
    fraction = '',
    customerId = null,
    country = '',
  ] = match;
  const price = BigInt(`${sign}${whole}${fraction.padEnd(3, '0')}`);
  const quantity = BigInt(units);
  return { invoiceNo, stockCode, quantity, at: `${day}T${time}`, amount: quantity * price, customerId, country };
}

function inThousandths(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(4, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -3)}.${digits.slice(-3)}`;
}

function known<T>(map: Map<string, T>, key: string, create: () => T): T {
  const present = map.get(key);
  if (present !== undefined) return present;
  const created = create();
  map.set(key, created);
  return created;
}

function mapped<T, U>(map: ReadonlyMap<string, T>, change: (value: T) => U): ReadonlyMap<string, U> {
  return new Map([...map].map(([key, value]) => [key, change(value)]));
}
