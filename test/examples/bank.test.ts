import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { accountBalanceV1 } from '../../examples/bank/account-balance.v1.ts';
import app from '../../examples/bank/app.ts';
import { berkaImport } from '../../examples/bank/berka-import.ts';
import {
  accountBalanceByEvolve,
  operationTotalsByEvolve,
  turnoverByDayByEvolve,
} from '../../examples/bank/by-evolve.ts';
import { bankAccount } from '../../examples/bank/events.ts';
import { operationTotalsV1 } from '../../examples/bank/operation-totals.v1.ts';
import { turnoverByDayV1 } from '../../examples/bank/turnover-by-day.v1.ts';
import { decimal, defineConfig, type Projection } from '../../src/index.ts';
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts';
import { verifyVersion } from '../../src/runtime/verification/verify.ts';
import { type InMemoryAppend, proveEqual } from '../../src/testing.ts';
import { generateBankFile, lateAndCorrected } from '../support/bank-file.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { realFiles } from '../support/real-files.ts';
import { linesOf } from '../support/retail-file.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const forms: readonly (readonly [Projection, Projection])[] = [
  [operationTotalsV1, operationTotalsByEvolve],
  [turnoverByDayV1, turnoverByDayByEvolve],
  [accountBalanceV1, accountBalanceByEvolve],
];
const real = realFiles.bank.path;
const files = [
  { name: 'a generated file', lines: () => generateBankFile(1993, 3_000) },
  ...(real === undefined ? [] : [{ name: 'the real file', lines: () => linesOf(real) }]),
];

let database: TestDatabase;
let runtime: Runtime | undefined;

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
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

if (real !== undefined) {
  test('the balances of the real file equal those that the bank recorded with each booking', {
    timeout: 300_000,
  }, async () => {
    runtime = await start();
    await append(runtime, await appendsOf(linesOf(real)));
    await caughtUp(runtime);
    const balances = new Map<string, { balance: string; bookings: number }>();
    for await (const line of linesOf(real)) {
      const row = JSON.parse(line) as { account_id: string; balance: number };
      const before = balances.get(row.account_id);
      balances.set(row.account_id, { balance: String(row.balance), bookings: (before?.bookings ?? 0) + 1 });
    }
    const table = await storedTable(runtime.db, accountBalanceV1);
    expect(table.size).toBe(1_229);
    for (const [accountId, { balance, bookings }] of balances) {
      const row = table.get(JSON.stringify([accountId])) as { balance: string; bookings: number };
      expect(row.bookings).toBe(bookings);
      // The bank rounded some of its balances, by at most a tenth of a crown.
      const tolerance = decimal('0.1').times(bookings);
      expect(decimal(row.balance).minus(balance).abs().lte(tolerance), `account ${accountId}`).toBe(true);
    }
  });
}

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

async function append({ log }: Runtime, appends: Iterable<InMemoryAppend>): Promise<void> {
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

async function* numbered(lines: Iterable<string> | AsyncIterable<string>) {
  let number = 0;
  for await (const text of lines) yield { text, number: ++number };
}
