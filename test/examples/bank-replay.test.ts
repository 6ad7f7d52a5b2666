import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deposit } from '../../examples/bank/account.ts';
import { accountV1 } from '../../examples/bank/account.v1.ts';
import { accountWithBug } from '../../examples/bank/account-with-bug.ts';
import app from '../../examples/bank/app.ts';
import { correctBooking } from '../../examples/bank/bank-bookings.ts';
import { bankAccount } from '../../examples/bank/events.ts';
import { reconcile } from '../../examples/bank/reconciliation.ts';
import { createRefold, globalPosition, type Projection, type Refold } from '../../src/index.ts';
import { listSnapshots } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readAllRebuilds } from '../../src/store/registry/rebuilds.ts';
import { runCliHere } from '../support/cli-here.ts';
import { untilCaughtUp } from '../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { readTransitions } from '../support/transitions.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let db: Database;
let running: Refold | undefined;
const warnings: string[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  await running?.stop();
  await db.close();
  await database.drop();
});

async function deploy(account: Projection): Promise<Refold> {
  await running?.stop();
  running = await createRefold(
    {
      ...app,
      projections: app.projections.map((one) => (one.id === account.id ? account : one)),
      development: false,
      database: { ...app.database, url: database.url },
      gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
    },
    { logger: pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) }) },
  );
  return running;
}

const deposits = new Map<string, number>();

/** Deposits of 1.00 on seven accounts, which are opened first. */
async function appendDeposits({ log }: Refold, events: number): Promise<void> {
  const appends = Array.from({ length: events }, (_, index) => {
    const streamId = `account-${index % 7}`;
    const before = deposits.get(streamId);
    deposits.set(streamId, (before ?? -1) + 1);
    const payload = { bookingId: `${streamId}-${(before ?? 0) + 2}`, bookedOn: '2026-01-31', amount: '1.00' };
    const event =
      before === undefined
        ? ({ type: 'AccountOpened', payload: { openedOn: '2026-01-01' } } as const)
        : ({ type: 'Deposited', payload: { ...payload, balance: `${before + 1}.00` } } as const);
    return { family: bankAccount, streamId, events: [event] };
  });
  await log.appendInOrder(appends);
}

async function rebuilt(): Promise<string | undefined> {
  await until(async () => (await readAllRebuilds(db)).length === 0);
  const [last] = await readTransitions(db, { name: 'account', version: 1, limit: 1 });
  return last?.reason;
}

/** The exit code of `refold verify`. */
async function verified(): Promise<number | null> {
  const config = ['--config', 'examples/bank/app.ts'];
  return (await runCliHere(['verify', 'account@1', ...config], { DATABASE_URL: database.url })).code;
}

test('a bug that was deployed is found by the reconciliation, and fixed by folding the events since then, and no others', async () => {
  const before = await deploy(accountV1);
  const snapshots = async () =>
    (await listSnapshots(db)).map(({ id, checkpoint }) => `${id} at ${checkpoint}`).join(', ');
  for (const kept of ['1 at 1000', '2 at 2000, 1 at 1000', '3 at 3000, 2 at 2000']) {
    await appendDeposits(before, 1_000);
    await until(async () => (await snapshots()) === kept);
  }
  expect(await reconcile(before)).toEqual({ events: 3_000, accounts: 7, balance: '2993.00', differences: [] });

  const broken = await deploy(accountWithBug);
  const edited = 'the code of its key or evolve is not the code that built its rows';
  expect(warnings).toContainEqual(expect.stringContaining(edited));
  for (let n = 0; n < 38; n++) await broken.execute(deposit, { accountId: `account-${n % 7}`, amount: '1' });
  for (const accountId of ['account-2', 'account-5'])
    await broken.execute(correctBooking, { accountId, bookingId: `${accountId}-2`, amount: '0.40' });
  await untilCaughtUp(broken);
  expect((await reconcile(broken)).differences.toSorted()).toEqual([
    'accounts: account account-2 has 434.00, the log adds up to 433.40.',
    'accounts: account account-5 has 433.00, the log adds up to 432.40.',
  ]);
  expect(await verified()).toBe(1);

  const fixed = await deploy(accountV1);
  expect((await reconcile(fixed)).differences).toHaveLength(2);
  const step = { actor: 'ann', reason: 'corrections did not change the balance' };
  await fixed.rebuilds.request('account@1', { ...step, from: { upTo: globalPosition(3_000n) } });
  const outcome = await rebuilt();
  expect(outcome).toBe('rebuilt up to position 3040 from snapshot 3 at position 3000, 40 events folded');
  expect(await reconcile(fixed)).toMatchObject({ events: 3_040, differences: [] });
  expect(await verified()).toBe(0);

  await fixed.rebuilds.request('account@1', step);
  expect(await rebuilt()).toBe('rebuilt up to position 3040, 3040 events folded');
  const { stdout } = await promisify(execFile)(process.execPath, ['reconcile.ts'], {
    cwd: 'examples/bank',
    env: { ...process.env, DATABASE_URL: database.url, NODE_ENV: 'production' },
  });
  expect(stdout).toBe('3040 events of 7 accounts add up to 3029.80: 0 differences.\n');

  const page = await readFile('docs/rebuilding.md', 'utf8');
  expect(page).toContain(`# account@1: ${outcome}.`);
  expect(page).toContain('accounts: account account-2 has 434.00, the log adds up to 433.40.');
});

test('the code of the page is the code of the example', async () => {
  const page = await readFile('docs/rebuilding.md', 'utf8');
  const sources = await Promise.all(
    ['account.v1.ts', 'account-with-bug.ts'].map((file) => readFile(`examples/bank/${file}`, 'utf8')),
  );
  const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code ?? '');
  expect(sources.map((source) => blocks.filter((block) => source.includes(block)).length)).toEqual([1, 1]);
});
