import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { accountV1 } from '../../examples/bank/account.v1.ts';
import { accountBalanceV1 } from '../../examples/bank/account-balance.v1.ts';
import app from '../../examples/bank/app.ts';
import { berkaImport } from '../../examples/bank/berka-import.ts';
import { bookingV1 } from '../../examples/bank/booking.v1.ts';
import { operationTotalsByEvolve, turnoverByDayByEvolve } from '../../examples/bank/by-evolve.ts';
import { bankAccount } from '../../examples/bank/events.ts';
import { operationTotalsV1 } from '../../examples/bank/operation-totals.v1.ts';
import { reconcile } from '../../examples/bank/reconciliation.ts';
import { statementV1 } from '../../examples/bank/statement.v1.ts';
import { turnoverByDayV1 } from '../../examples/bank/turnover-by-day.v1.ts';
import { createRefold, defineConfig, type Projection } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { verifyVersion } from '../../src/runtime/verification/verify.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { type InMemoryAppend, proveEqual } from '../../src/testing.ts';
import { generateBankFile, lateAndCorrected } from '../support/bank-file.ts';
import { effort } from '../support/effort.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { untilCaughtUp } from '../support/patient.ts';
import { realFiles } from '../support/real-files.ts';
import { linesOf } from '../support/retail-file.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const forms: readonly (readonly [Projection, Projection])[] = [
  [operationTotalsV1, operationTotalsByEvolve],
  [turnoverByDayV1, turnoverByDayByEvolve],
  [accountBalanceV1, accountV1],
];
const real = realFiles.bank.path;
/** In CI the whole file; elsewhere its first months, which are the whole story of some accounts' first months. */
const realLines = effort(Number.POSITIVE_INFINITY, 6_000);
const files = [
  { name: 'a generated file', lines: () => generateBankFile(1993, 3_000) },
  ...(real === undefined ? [] : [{ name: 'the real file', lines: () => firstOf(linesOf(real), realLines) }]),
];

let database: TestDatabase;
let runtime: Runtime | undefined;
const open: (() => Promise<void>)[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await runtime?.stop();
  runtime = undefined;
  await database.drop();
});

const named = forms.map(([bySql, byEvolve]) => [bySql.id, bySql, byEvolve] as const);

test.each(named)('the SQL of %s is equal to its evolve, in any order of events', async (_, bySql, byEvolve) => {
  const appends = await appendsOf(generateBankFile(7, 300));
  const events = [...lateAndCorrected(appends, 7)];
  await proveEqual({ evolve: byEvolve, evolveSql: bySql, events, databaseUrl: database.url, divisions: 10 });
});

describe.each(files)('the read models of $name', ({ lines }) => {
  test('equal one fold, event by event, with late bookings and corrections', async () => {
    runtime = await start();
    const { log, db } = runtime;
    await append(runtime, lateAndCorrected(await appendsOf(lines()), 11));
    await caughtUp(runtime);
    for (const [bySql, byEvolve] of forms) {
      expect(await storedTable(db, bySql), bySql.id).toEqual(await foldedTable(log, byEvolve));
      const verified = await verifyVersion({ db, log, readSchema: 'read_models', projection: bySql });
      expect(verified, bySql.id).toMatchObject({ differences: 0 });
    }
  });
});

describe.each(files)('the import of $name', ({ lines }) => {
  test('chains every day of every account, books what the old bank rounded, and reconciles', async () => {
    const bank = await createRefold({
      ...app,
      development: false,
      database: { ...app.database, url: database.url },
      gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
    });
    open.push(() => bank.stop());
    await append(bank, await appendsOf(lines()));
    await untilCaughtUp(bank);
    // What the file itself says: the balance at the end of each day of each account, and where a balance does not follow from the one before.
    const days = new Map<string, string>();
    const balances = new Map<string, number>();
    const rounded: string[] = [];
    let rows = 0;
    for await (const line of lines()) {
      const row = JSON.parse(line) as FileRow;
      const [amount, balance] = [Math.round(row.amount * 100), Math.round(row.balance * 100)];
      const change = row.type === 'PRIJEM' ? amount : -amount;
      const difference = (balances.get(row.account_id) ?? 0) + change - balance;
      expect([0, 10], `cents at booking ${row.trans_id}`).toContain(Math.abs(difference));
      if (difference !== 0) rounded.push(`${row.trans_id}-rounding`);
      balances.set(row.account_id, balance);
      days.set(`${row.account_id} 19${row.date.replace(/(..)(..)(..)/, '$1-$2-$3')}`, String(row.balance));
      rows++;
    }
    const db = createDatabase({ url: database.url });
    open.push(() => db.close());
    const bookings = [...(await storedTable(db, bookingV1)).values()] as unknown as BookingRow[];
    bookings.sort((a, b) => a.number - b.number);
    const found = new Map(bookings.map(({ accountId, bookedOn, balance }) => [`${accountId} ${bookedOn}`, balance]));
    expect(found).toEqual(days);
    expect(bookings.flatMap(({ bookingId, corrects }) => (corrects ? [bookingId] : [])).sort()).toEqual(rounded.sort());
    expect(bookings.length).toBe(rows + rounded.length);
    if (real !== undefined && rows > 40_000)
      expect([rows, balances.size, days.size, rounded.length]).toEqual([46_997, 1_229, 38_821, 2_031]);

    const accounts = await storedTable(db, accountV1);
    expect(accounts.size).toBe(balances.size);
    const statements = await storedTable(db, statementV1);
    expect(statements.size).toBe(new Set([...days.keys()].map((day) => day.slice(0, -3))).size);
    expect(await reconcile(bank)).toMatchObject({ accounts: balances.size, differences: [] });
  });
});

interface FileRow {
  readonly trans_id: string;
  readonly account_id: string;
  readonly date: string;
  readonly type: string;
  readonly amount: number;
  readonly balance: number;
}

interface BookingRow {
  readonly bookingId: string;
  readonly accountId: string;
  readonly number: number;
  readonly bookedOn: string;
  readonly balance: string;
  readonly corrects: string | null;
}

test('an import refuses a file in which a booking is missing', async () => {
  const lines = [...generateBankFile(3, 400)].filter((_, index) => index !== 200);
  await expect(appendsOf(lines)).rejects.toThrow(
    /^Booking \d+ of account \d+ leads to a balance of .*, but the file says/,
  );
});

async function start(): Promise<Runtime> {
  return startRuntime({
    config: defineConfig({ projections: app.projections, runtime: { polling: { min: 20, max: 100 } } }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: process.env.LOG ?? 'silent' }),
  });
}

async function caughtUp({ log, status }: Runtime): Promise<void> {
  const horizon = await log.horizon();
  await until(async () => (await status()).every(({ position, state }) => position >= horizon && state === 'active'));
}

async function append({ log }: Pick<Runtime, 'log'>, appends: Iterable<InMemoryAppend>): Promise<void> {
  const all = [...appends].map((one) => ({ ...one, family: bankAccount }));
  for (let start = 0; start < all.length; start += 1_000) {
    const verdicts = await log.appendInOrder(all.slice(start, start + 1_000) as never); // events of this family, as the import made them
    expect(verdicts.every(({ kind }) => kind === 'written')).toBe(true);
  }
}

async function appendsOf(lines: Iterable<string> | AsyncIterable<string>): Promise<InMemoryAppend[]> {
  const appends: InMemoryAppend[] = [];
  for await (const one of berkaImport.toAppends(numbered(lines))) appends.push(one);
  return appends;
}

async function* firstOf(lines: AsyncIterable<string>, most: number): AsyncGenerator<string> {
  let left = most;
  for await (const line of lines) {
    if (left-- <= 0) return;
    yield line;
  }
}

async function* numbered(lines: Iterable<string> | AsyncIterable<string>) {
  let number = 0;
  for await (const text of lines) yield { text, number: ++number };
}
