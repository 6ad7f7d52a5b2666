import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import app from '../../examples/ride-hailing/app.ts';
import { driverV1 } from '../../examples/ride-hailing/driver.v1.ts';
import { rideOrderV1 } from '../../examples/ride-hailing/ride-order.v1.ts';
import { taxiImport, zoneImport } from '../../examples/ride-hailing/taxi-import.ts';
import { zoneHourV1 } from '../../examples/ride-hailing/zone-hour.v1.ts';
import { beginning, createRefold, type Import, type Refold } from '../../src/index.ts';
import { type ImportProgress, importEvents } from '../../src/runtime/commands/import-events.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { linesToRead } from '../support/effort.ts';
import { storedTable } from '../support/folded-table.ts';
import { untilActive, untilCaughtUp } from '../support/patient.ts';
import { realFiles } from '../support/real-files.ts';
import { firstLinesOf, linesOf } from '../support/retail-file.ts';
import { seed } from '../support/seed.ts';
import {
  centsOf,
  computeTaxiOracle,
  generateTaxiFile,
  inPublishedOrder,
  type TaxiOracle,
} from '../support/taxi-file.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const whole = 205_064;

const real = realFiles.taxi.path;
const files = [
  { name: 'a generated file', lines: async () => generateTaxiFile(seed, 2_000) },
  ...(real === undefined
    ? []
    : [
        { name: 'the real file', lines: async () => (await publishedRides(real)).slice(0, linesToRead(60_000, 6_000)) },
      ]),
];

function publishedRides(path: string): Promise<readonly string[]> {
  return inPublishedOrder(linesOf(path));
}

let folder: string;
let database: TestDatabase;
let db: Database;
let rides: Refold;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refold-taxi-'));
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  rides = await createRefold(
    {
      ...app,
      development: false,
      reactors: [],
      database: { ...app.database, url: database.url },
      gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
    },
    { logger: pino({ level: process.env.LOG ?? 'silent' }) },
  );
  for (const { id } of app.projections) await untilActive(rides, id);
});
afterEach(async () => {
  await rides.stop();
  await db.close();
  await database.drop();
  await rm(folder, { recursive: true });
});

describe.each(files)('the rides of $name, in the order of their publication', ({ lines }) => {
  test('come to the zone and hour of their pickup, negative ones to the order that they take back, and all totals are exact', {
    timeout: 1_800_000, // the whole file takes minutes on a busy machine
  }, async () => {
    const published = await lines();
    const oracle = computeTaxiOracle(published);
    expect(oracle.backwards).toBeGreaterThan(published.length / 20);
    expect(await imported(taxiImport, published)).toMatchObject({ lines: published.length, skipped: 0 });
    await untilCaughtUp(rides);
    await expectExactTables(oracle);
    await expectExactAnswers(oracle);
    expect(await pickupsGoBackwards()).toBe(oracle.backwards);
    expect(await imported(taxiImport, published)).toMatchObject({ written: 0 });
    if (published.length === whole)
      expect([oracle.cents, oracle.backwards, oracle.orders.size]).toEqual([451_061_990n, 96_019, 204_506]);
  });
});

test('the order of the lines makes no difference', async () => {
  const lines = generateTaxiFile(seed, 600);
  await imported(
    taxiImport,
    lines.toSorted((a, b) => (digest(a) < digest(b) ? -1 : 1)),
  );
  await untilCaughtUp(rides);
  await expectExactTables(computeTaxiOracle(lines));
});

if (realFiles.taxiZones.path !== undefined) {
  const file = realFiles.taxiZones.path;
  test('the hours of a zone lead to its name', async () => {
    const lines = await firstLinesOf(file, 300);
    expect(await imported(zoneImport, lines)).toMatchObject({ written: 265 });
    await imported(taxiImport, generateTaxiFile(seed, 100));
    await untilCaughtUp(rides);
    const { zoneHours, zone } = await ask(`{
      zoneHours(first: 1) { nodes { zoneId zone { name borough } } }
      zone(zoneId: "12") { name borough hours { totalCount } }
    }`);
    const [hour] = zoneHours.nodes;
    expect(lines.find((line) => line.includes(`"LocationID":"${hour.zoneId}"`))).toContain(hour.zone.name);
    expect(zone).toMatchObject({ name: 'Battery Park', borough: 'Manhattan' });
  });
}

async function imported(definition: Import, lines: readonly string[]): Promise<ImportProgress> {
  const file = join(folder, 'lines.jsonl');
  await writeFile(file, lines.join('\n'));
  return importEvents({ db, log: rides.log, definition, file });
}

async function expectExactTables(oracle: TaxiOracle): Promise<void> {
  const hours = [...(await storedTable(db, zoneHourV1)).values()] as readonly {
    readonly zoneId: string;
    readonly day: string;
    readonly hour: number;
    readonly rides: number;
    readonly refunds: number;
    readonly revenue: string;
  }[];
  const found = hours.map(({ zoneId, day, hour, revenue, ...counts }) => [
    `${zoneId} ${day} ${hour}`,
    { rides: counts.rides, refunds: counts.refunds, cents: centsOf(revenue) },
  ]);
  expect(differences(new Map(found as [string, unknown][]), oracle.hours)).toEqual([]);
  const orders = [...(await storedTable(db, rideOrderV1)).values()] as readonly {
    readonly orderId: string;
    readonly status: string;
    readonly price: string;
    readonly refunded: string;
    readonly driverId: string | null;
  }[];
  expect(new Set(orders.map(({ status, driverId }) => `${status} ${driverId}`))).toEqual(new Set(['Completed null']));
  const amounts = orders.map(({ orderId, price, refunded }) => [
    orderId.replace(/^taxi-(.)-(.{19})-(.{19})-(\d+)-(\d+)$/, '$1 $2 $3 $4 $5').replaceAll('T', ' '),
    { price: centsOf(price), refunded: centsOf(refunded) },
  ]);
  expect(differences(new Map(amounts as [string, unknown][]), oracle.orders)).toEqual([]);
  // No ride names a driver.
  expect((await storedTable(db, driverV1)).size).toBe(0);
}

/** Over HTTP: the sums of all hours, of each day, and of orders. */
async function expectExactAnswers(oracle: TaxiOracle): Promise<void> {
  const { all, byDay, orders } = await ask(`{
    all: zoneHoursAggregate { count sum { rides refunds revenue } }
    byDay: zoneHoursGrouped(by: [day], first: 100) { key { day } sum { rides revenue } }
    orders: rideOrdersAggregate { count sum { price refunded } }
  }`);
  const sums = [...oracle.hours.values()];
  expect({ ...all, sum: { ...all.sum, revenue: centsOf(all.sum.revenue) } }).toEqual({
    count: oracle.hours.size,
    sum: {
      rides: String(sums.reduce((sum, { rides }) => sum + rides, 0)),
      refunds: String(sums.reduce((sum, { refunds }) => sum + refunds, 0)),
      revenue: oracle.cents,
    },
  });
  const days = Map.groupBy(oracle.hours, ([key]) => key.split(' ')[1]);
  expect(
    new Map(
      byDay.map(({ key, sum }: { key: { day: string }; sum: { revenue: string } }) => [key.day, centsOf(sum.revenue)]),
    ),
  ).toEqual(new Map([...days].map(([day, hours]) => [day, hours.reduce((sum, [, { cents }]) => sum + cents, 0n)])));
  expect(orders.count).toBe(oracle.orders.size);
  expect(centsOf(orders.sum.price) - centsOf(orders.sum.refunded)).toBe(oracle.cents);
}

/** How often the log has a ride after one that began later. */
async function pickupsGoBackwards(): Promise<number> {
  const upTo = await rides.log.horizon();
  const filter = [{ family: 'ride_order', types: ['OrderCompleted', 'FareRefunded'] }];
  let [last, backwards] = ['', 0];
  for (let after = beginning; after < upTo; ) {
    const page = await rides.log.readAll({ after, upTo, filter, limit: 10_000 });
    for (const { payload } of page.events) {
      const { pickedUpAt } = payload as { pickedUpAt: string }; // of both types
      if (pickedUpAt < last) backwards += 1;
      last = pickedUpAt;
    }
    after = page.upTo;
  }
  return backwards;
}

async function ask(query: string) {
  const body = JSON.stringify({ query });
  const headers = { 'content-type': 'application/json' };
  return until(async () => {
    const { data, errors } = await (await fetch(`${rides.url}/graphql`, { method: 'POST', headers, body })).json();
    // A gateway notices an activation a moment later.
    if (errors?.every(({ extensions }: { extensions: { code: string } }) => extensions.code === 'PROJECTION_NOT_READY'))
      return false;
    expect(errors).toBeUndefined();
    return data;
  });
}

/** The first differences: a wrong fold differs in many rows. */
function differences(found: ReadonlyMap<string, unknown>, expected: ReadonlyMap<string, unknown>): string[] {
  const text = (value: unknown) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((key) => text(found.get(key)) !== text(expected.get(key)))
    .slice(0, 3)
    .map((key) => `${key}: expected ${text(expected.get(key))}, found ${text(found.get(key))}`);
}

/** A reproducible disorder. */
function digest(text: string): number {
  let sum = seed;
  for (const char of text) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 1_000_003;
  return sum;
}
