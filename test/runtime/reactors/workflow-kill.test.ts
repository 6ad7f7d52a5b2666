import { afterAll, beforeAll, expect, test } from 'vitest';
import { account, transfer } from '../../../examples/money-transfer/events.ts';
import { requestTransfer } from '../../../examples/money-transfer/transfer.ts';
import { beginning, type RecordedEvent } from '../../../src/index.ts';
import { executeCommand } from '../../../src/runtime/commands/command-handler.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readReactors } from '../../../src/store/reactors/reactors.ts';
import { seeded } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const workers = createWorkerProcesses('runtime/reactors/workflow-process.ts');

const accounts = Array.from({ length: 10 }, (_, index) => `account-${index}`);

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account, transfer]);
});
afterAll(async () => {
  await workers.killAll();
  await db.close();
  await database.drop();
});

async function allEvents(): Promise<readonly RecordedEvent[]> {
  const { events } = await log.readAll({ after: beginning, upTo: await log.horizon(), limit: 100_000 });
  return events;
}

/** What a transfer did to the accounts and how it ended, in order. */
function stepsOf(events: readonly RecordedEvent[], transferId: string): string[] {
  return events
    .filter(
      ({ family, streamId, payload }) =>
        (family === 'transfer' && streamId === transferId) ||
        (payload as { transferId?: string }).transferId === transferId, // any payload is an object
    )
    .map(({ type, streamId, family }) => (family === 'transfer' ? type : `${type} ${streamId}`));
}

test('processes killed at random in the middle of workflows do every step once, and the total of money stays the same', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  for (const streamId of accounts) {
    await log.append({
      family: account,
      streamId,
      events: [
        { type: 'AccountOpened', payload: { owner: streamId } },
        { type: 'MoneyDeposited', payload: { amount: '100.00' } },
      ],
    });
  }
  const pick = () => accounts[Math.floor(random() * accounts.length)] as string; // it is never empty
  const requested = new Map<string, { from: string; to: string }>();
  const request = async () => {
    const transferId = `t${requested.size}`;
    // Some transfers go to accounts that don't exist yet; this is decided once for each transfer.
    const to = random() < 0.3 ? `late-${Math.floor(random() * 5)}` : pick();
    const from = pick();
    if (from === to) return;
    requested.set(transferId, { from, to });
    await executeCommand(log, requestTransfer, { transferId, from, to, amount: (random() * 25).toFixed(2) });
  };
  const reactor = async () => (await readReactors(db))[0];
  let killing = true;
  const traffic = (async () => {
    while (killing) {
      await Promise.all(Array.from({ length: 5 }, request));
      const asked = await log.head();
      await until(async () => !killing || asked - ((await reactor())?.checkpoint ?? 0n) < 60n);
    }
  })();

  const living = new Map<string, WorkerProcess>();
  living.set('worker-0', await workers.start({ url: database.url, owner: 'worker-0' }));
  for (let round = 1; round <= effort(8, 5); round++) {
    living.set(`worker-${round}`, await workers.start({ url: database.url, owner: `worker-${round}` }));
    const before = (await reactor())?.checkpoint ?? 0n;
    const target = BigInt(Math.floor(random() * 40));
    await until(async () => ((await reactor())?.checkpoint ?? 0n) - before > target);
    const owner = await until(async () => {
      const name = (await reactor())?.owner;
      return name !== null && name !== undefined && living.has(name) && name;
    });
    await living.get(owner)?.end('SIGKILL');
    living.delete(owner);
    // A step refused because of a missing account would be accepted from now on.
    if (round <= 5)
      await log.append({
        family: account,
        streamId: `late-${round - 1}`,
        events: [{ type: 'AccountOpened', payload: { owner: 'late' } }],
      });
  }
  killing = false;
  await traffic;
  const head = await log.head();
  await until(async () => ((await reactor())?.checkpoint ?? 0n) >= head);
  for (const worker of living.values()) await worker.end('SIGTERM');

  const events = await allEvents();
  const outcomes = new Set<string>();
  for (const [transferId, { from, to }] of requested) {
    const steps = stepsOf(events, transferId);
    const possible = [
      ['TransferRequested', `MoneyWithdrawn ${from}`, `MoneyDeposited ${to}`, 'TransferCompleted'],
      ['TransferRequested', `MoneyWithdrawn ${from}`, `MoneyDeposited ${from}`, 'TransferFailed'],
      ['TransferRequested', 'TransferFailed'],
    ].map((one) => one.join());
    expect(possible, `${transferId}, seed ${seed}`).toContain(steps.join());
    outcomes.add(`${steps.length} ${steps.at(-1)}`);
  }
  for (const outcome of ['4 TransferCompleted', '4 TransferFailed'])
    expect(outcomes, `seed ${seed}`).toContain(outcome);
  const cents = events.map(({ type, payload }) => {
    const { amount = '0' } = payload as { amount?: string }; // any payload is an object
    const value = Math.round(Number(amount) * 100);
    return type === 'MoneyDeposited' ? value : type === 'MoneyWithdrawn' ? -value : 0;
  });
  expect(cents.reduce((sum, one) => sum + one, 0)).toBe(accounts.length * 10_000);
}, 900_000); // slow on a busy machine; only the result matters
