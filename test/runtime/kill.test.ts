import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Projection } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { readRegistry } from '../../src/store/registry.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const workers = new Set<ChildProcess>();

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
});
afterAll(async () => {
  await Promise.all([...workers].map((worker) => end(worker, 'SIGKILL')));
  await db.close();
  await database.drop();
});

async function startWorker(owner: string): Promise<ChildProcess> {
  const worker = spawn(process.execPath, [`${import.meta.dirname}/worker-process.ts`, database.url, owner], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  workers.add(worker);
  await once(worker.stdout ?? worker, 'data');
  return worker;
}

async function end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  workers.delete(worker);
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const exited = once(worker, 'exit');
  worker.kill(signal);
  await exited;
}

/** Appends to random accounts: every account is opened once, and some are closed, so that rows come, change and go. */
async function traffic(events: number, random: () => number): Promise<void> {
  const appends = Array.from({ length: events }, async () => {
    const streamId = `account-${Math.floor(random() * 300)}`;
    const amount = (random() * 100).toFixed(2);
    const draw = random();
    const event =
      draw < 0.1
        ? ({ type: 'Opened', payload: { owner: `owner-${Math.floor(random() * 20)}` } } as const)
        : draw < 0.13
          ? ({ type: 'Closed', payload: {} } as const)
          : draw < 0.6
            ? ({ type: 'Credited', payload: { amount } } as const)
            : ({ type: 'Debited', payload: { amount } } as const);
    await log.append({ family: account, streamId, events: [event] });
  });
  await Promise.all(appends);
}

async function checkpoints(): Promise<bigint[]> {
  const versions = await readRegistry(db);
  return versions.length === 0 ? [0n] : versions.map((version) => version.checkpoint);
}

// mulberry32: a seed repeats a run's choices
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

test('workers killed at random points of catch-up and live traffic leave every read table as one fold of the log', async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(5_000, random);
  // Traffic never pauses, so that kills fall into batches, and never runs away from the workers.
  let killing = true;
  const live = (async () => {
    while (killing) {
      await traffic(20, random);
      const head = await log.head();
      await until(async () => !killing || (await checkpoints()).every((checkpoint) => head - checkpoint < 2_000n));
    }
  })();
  const names = new Map<string, ChildProcess>();
  names.set('worker-0', await startWorker('worker-0'));
  for (let round = 1; round <= 20; round++) {
    names.set(`worker-${round}`, await startWorker(`worker-${round}`));
    const before = await checkpoints();
    const target = BigInt(Math.floor(random() * 500));
    await until(async () =>
      (await checkpoints()).some((checkpoint, index) => checkpoint - (before[index] ?? 0n) > target),
    );
    const owner = await until(async () =>
      (await readRegistry(db)).map((version) => version.owner).find((name) => name !== null && names.has(name)),
    );
    await end(names.get(owner) as ChildProcess, 'SIGKILL');
    names.delete(owner);
    // Whatever the victim owned, the survivor takes over: everything moves on without a new process.
    const horizon = await log.horizon();
    await until(async () => (await checkpoints()).every((checkpoint) => checkpoint >= horizon));
  }
  killing = false;
  await live;
  const horizon = await log.horizon();
  await until(async () => (await checkpoints()).every((checkpoint) => checkpoint >= horizon));
  for (const projection of [balanceV1, balanceV2, openingsV1] as Projection[]) {
    expect(await storedTable(db, projection), `${projection.id}, seed ${seed}`).toEqual(
      await foldedTable(log, projection),
    );
  }
  for (const worker of names.values()) await end(worker, 'SIGTERM');
}, 300_000);
