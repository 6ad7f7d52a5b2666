import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Projection } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { readRegistry } from '../../src/store/registry.ts';
import { seeded, traffic } from '../support/account-traffic.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../support/worker-processes.ts';

let database: TestDatabase;
let db: Database;
let log: EventLog;
const workers = createWorkerProcesses();
const random = seeded(20_260_131);

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

/** A worker whose sessions have its name in the server. */
function startWorker(owner: string): Promise<WorkerProcess> {
  const url = new URL(database.url);
  url.searchParams.set('application_name', owner);
  return workers.start({ url: url.href, owner, runtime: { ownership: 'lease', leaseSeconds: 1 } });
}

/** Appends for as long as `work` takes, never far ahead of the workers. */
async function underTraffic(work: () => Promise<void>): Promise<void> {
  let working = true;
  const appends = (async () => {
    while (working) {
      await traffic(log, 20, random);
      const head = await log.head();
      await until(async () => !working || (await checkpoints()).every((checkpoint) => head - checkpoint < 2_000n));
    }
  })();
  await work().finally(() => {
    working = false;
  });
  await appends;
}

async function checkpoints(): Promise<bigint[]> {
  return (await readRegistry(db)).map(({ checkpoint }) => checkpoint);
}

async function moveOn(): Promise<void> {
  const horizon = await log.horizon();
  await until(async () => (await checkpoints()).every((checkpoint) => checkpoint >= horizon));
}

/** Waits until one process owns everything. */
function ownerOfAll(): Promise<string> {
  return until(async () => {
    const owners = new Set((await readRegistry(db)).map(({ owner }) => owner));
    return owners.size === 1 && [...owners][0];
  });
}

async function expectFolds(): Promise<void> {
  await moveOn();
  for (const projection of [balanceV1, balanceV2, openingsV1] as Projection[]) {
    expect(await storedTable(db, projection), projection.id).toEqual(await foldedTable(log, projection));
  }
}

test('another process goes on when the lease of a killed owner ends', async () => {
  await traffic(log, 1_000, random);
  let owner = await startWorker('killed-0');
  await moveOn();
  await underTraffic(async () => {
    for (let round = 1; round <= 3; round++) {
      const next = await startWorker(`killed-${round}`);
      await owner.end('SIGKILL');
      await until(async () => (await ownerOfAll()) === next.owner);
      await moveOn();
      owner = next;
    }
  });
  await expectFolds();
  await owner.end('SIGTERM');
  expect(await db.query({ text: 'select name from refold.leases' })).toEqual([]);
}, 300_000);

test('an owner that was stopped beyond its lease wakes up as no owner, and writes nothing', async () => {
  // Which process committed which batch, in the transaction of the batch.
  await db.query({
    text: `
      create table batches (
        number bigint generated always as identity,
        writer text default current_setting('application_name'),
        checkpoint bigint
      )`,
  });
  await db.query({
    text: `
      create function note_batch() returns trigger language plpgsql as $$
      begin
        insert into batches (checkpoint) values (new.checkpoint);
        return null;
      end $$`,
  });
  await db.query({
    text: `
      create trigger note_batch after update of checkpoint on refold.processors
      for each row execute function note_batch()`,
  });
  const batchesOf = (writer: string) =>
    db.query({ text: 'select checkpoint from batches where writer = $1 order by number', values: [writer] });

  let owner = await startWorker('stopped-0');
  await moveOn();
  await underTraffic(async () => {
    for (let round = 1; round <= 4; round++) {
      const next = await startWorker(`stopped-${round}`);
      // In the middle of its work, at whatever statement it is.
      const before = (await batchesOf(owner.owner)).length;
      await until(async () => (await batchesOf(owner.owner)).length > before);
      owner.signal('SIGSTOP');
      await until(async () => (await ownerOfAll()) === next.owner);
      await moveOn();
      const written = await batchesOf(owner.owner);
      owner.signal('SIGCONT');
      const woken = owner;
      await until(() => woken.said.some(({ msg }) => msg.startsWith('balance@1: trying again')));
      // It goes on trying to own something, and must not while the other one renews.
      await moveOn();
      await woken.end('SIGTERM');
      expect(await batchesOf(woken.owner)).toEqual(written);
      // It knew by its own clock, or by the end of the transaction that it was stopped in: the fence was not even asked.
      expect(woken.said.map(({ err }) => err?.message).join()).not.toContain('another owner has taken over');
      owner = next;
    }
  });
  await expectFolds();
  await owner.end('SIGTERM');
}, 300_000);
