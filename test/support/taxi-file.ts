import { randomNumbers } from '../../examples/shopping-cart/random-numbers.ts';

/** The lines of the taxi file in the order in which the city published them. */
export async function inPublishedOrder(lines: AsyncIterable<string> | Iterable<string>): Promise<readonly string[]> {
  const all: { readonly place: string; readonly text: string }[] = [];
  for await (const text of lines) all.push({ place: placeOf(text), text });
  return all.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ text }) => text);
}

function placeOf(text: string): string {
  const [, file = '', row = ''] = /"_file":"([^"]+)","_row":(\d+)/.exec(text) ?? [];
  return `${file} ${row.padStart(8, '0')}`;
}

/**
 * Lines in the form of the real file, with what makes it hard: pickups that go backwards, rides that are published months late or name another
 * year, negative rides before and without the ride that they take back, hours that clocks skip, and rides for nothing.
 */
export function generateTaxiFile(seed: number, rows: number): readonly string[] {
  const random = randomNumbers(seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const lines: string[] = [];
  const write = (file: string, pickup: number, ride: string, total: number) => {
    const [start, end] = [pickup, pickup + 900_000].map((at) =>
      new Date(at).toISOString().slice(0, 19).replace('T', ' '),
    );
    const times = `"lpep_pickup_datetime":"${start}","lpep_dropoff_datetime":"${end}"`;
    const place = `"_file":"${file}","_row":${lines.length},"VendorID":${2 - (pickup % 2)}`;
    lines.push(`{${place},${times},${ride},"total_amount":${total / 100},"payment_type":null}`);
  };
  for (let ride = 0; lines.length < rows; ride++) {
    const file = `2023-0${1 + Math.floor((3 * lines.length) / rows)}`;
    const late = random() < 0.4 ? between(0, 40 * 86_400) : 0;
    const other = random() < 0.01 ? Date.UTC(2008, 11, 31, 23) : Date.UTC(2023, 2, 12);
    const pickup = other + ride * 120_000 - late * 1000;
    const zones = `"PULocationID":${between(1, 12)},"DOLocationID":${between(1, 265)}`;
    const total = between(0, 6000);
    const draw = random();
    if (draw < 0.05 && total > 0) write(file, pickup, zones, -total);
    if (draw < 0.04 || draw >= 0.05) write(file, pickup, zones, total);
  }
  return lines;
}

/** What the read models must hold, computed from the text of the lines: amounts in cents, hours as they are written. */
export interface TaxiOracle {
  readonly hours: ReadonlyMap<string, { readonly rides: number; readonly refunds: number; readonly cents: bigint }>;
  /** By ride: its price and what was taken back. */
  readonly orders: ReadonlyMap<string, { readonly price: bigint; readonly refunded: bigint }>;
  readonly cents: bigint;
  /** How often a ride began before the one that was published before it. */
  readonly backwards: number;
}

export function computeTaxiOracle(lines: Iterable<string>): TaxiOracle {
  const hours = new Map<string, { rides: number; refunds: number; cents: bigint }>();
  const orders = new Map<string, { price: bigint; refunded: bigint }>();
  let cents = 0n;
  let backwards = 0;
  let last = '';
  for (const text of lines) {
    const of = (name: string) => new RegExp(`"${name}":"?([^",}]*)`).exec(text)?.[1] ?? '';
    const pickup = of('lpep_pickup_datetime');
    const total = centsOf(of('total_amount'));
    const key = [of('PULocationID'), pickup.slice(0, 10), String(Number(pickup.slice(11, 13)))].join(' ');
    const hour = hours.get(key) ?? { rides: 0, refunds: 0, cents: 0n };
    if (total < 0n) hour.refunds += 1;
    else hour.rides += 1;
    hour.cents += total;
    hours.set(key, hour);
    const ride = [of('VendorID'), pickup, of('lpep_dropoff_datetime'), of('PULocationID'), of('DOLocationID')].join(
      ' ',
    );
    const order = orders.get(ride) ?? { price: 0n, refunded: 0n };
    if (total < 0n) order.refunded -= total;
    else order.price += total;
    orders.set(ride, order);
    cents += total;
    if (pickup < last) backwards += 1;
    last = pickup;
  }
  return { hours, orders, cents, backwards };
}

/** `-4.3` → -430n */
export function centsOf(amount: string): bigint {
  const [, sign, whole = '', digits = ''] = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(amount) ?? [];
  const cents = BigInt(whole) * 100n + BigInt(digits.padEnd(2, '0'));
  return sign === '-' ? -cents : cents;
}
