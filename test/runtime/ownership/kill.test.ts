import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import { createEventLog, type EventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic } from '../../support/account-traffic.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const workers = createWorkerProcesses();

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  log = createEventLog(db, [account]);
});
afterAll(async () => {
  await workers.killAll();
  await db.close();
  await database.drop();
});

async function checkpoints(): Promise<bigint[]> {
  const versions = await readRegistry(db);
  return versions.length === 0 ? [0n] : versions.map((version) => version.checkpoint);
}

test('workers killed at random points of catch-up and live traffic leave every read table equal to one fold of the log', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(log, 5_000, random);
  // Traffic never pauses, so kills hit batches, and never runs far ahead of the workers.
  let killing = true;
  const live = (async () => {
    while (killing) {
      await traffic(log, 20, random);
      const head = await log.head();
      await until(async () => !killing || (await checkpoints()).every((checkpoint) => head - checkpoint < 500n));
    }
  })();
  const names = new Map<string, WorkerProcess>();
  names.set('worker-0', await workers.start({ url: database.url, owner: 'worker-0' }));
  for (let round = 1; round <= effort(8, 3); round++) {
    names.set(`worker-${round}`, await workers.start({ url: database.url, owner: `worker-${round}` }));
    const before = await checkpoints();
    const target = BigInt(Math.floor(random() * 500));
    await until(async () =>
      (await checkpoints()).some((checkpoint, index) => checkpoint - (before[index] ?? 0n) > target),
    );
    const owner = await until(async () =>
      (await readRegistry(db)).map((version) => version.owner).find((name) => name !== null && names.has(name)),
    );
    await names.get(owner)?.end('SIGKILL');
    names.delete(owner);
    // The survivor takes over everything that the victim owned: all work continues without a new process.
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
  for (const worker of names.values()) await worker.end('SIGTERM');
}, 900_000); // slow on a busy machine; only the result matters
