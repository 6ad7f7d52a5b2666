import { afterAll, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic, underTraffic } from '../../support/account-traffic.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

const { database, db, log } = await databaseOfFile(account);
const workers = createWorkerProcesses();
const random = seeded(20_260_131);
afterAll(() => workers.killAll());

/** A worker whose sessions carry its name in the server. */
function startWorker(owner: string, leaseSeconds = 2): Promise<WorkerProcess> {
  const url = new URL(database.url);
  url.searchParams.set('application_name', owner);
  return workers.start({ url: url.href, owner, runtime: { ownership: 'lease', leaseSeconds } });
}

/** Appends for as long as `work` takes. */
const whileAppending = (work: () => Promise<void>) =>
  underTraffic(
    log,
    random,
    async (head) => (await checkpoints()).every((checkpoint) => head - checkpoint < 2_000n),
    work,
  );

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

test('another process continues when the lease of a killed owner expires', async () => {
  await traffic(log, 1_000, random);
  let owner = await startWorker('killed-0');
  await moveOn();
  await whileAppending(async () => {
    for (let round = 1; round <= effort(2, 1); round++) {
      const next = await startWorker(`killed-${round}`);
      await owner.end('SIGKILL');
      await until(async () => (await ownerOfAll()) === next.owner);
      await moveOn();
      owner = next;
    }
  });
  await expectFolds();
  // A response of the database may take a third of the lease, but this process has enough time to release what it took.
  const last = await startWorker('ended', 60);
  await owner.end('SIGTERM');
  await until(async () => (await ownerOfAll()) === last.owner);
  await last.end('SIGTERM');
  expect(await db.query({ text: 'select name from refold.leases' })).toEqual([]);
}, 900_000); // as kill.test.ts

test('an owner that was stopped for longer than its lease has lost its ownership when it wakes, and writes nothing', async () => {
  // Records which process committed which batch, in the batch's transaction, and which process received its epoch.
  await db.query({
    text: `
      create table batches (
        writer text default current_setting('application_name'),
        name text,
        version integer,
        epoch bigint
      )`,
  });
  await db.query({ text: 'create table claims (name text, version integer, epoch bigint, owner text)' });
  await db.query({
    text: `
      create function note_batch() returns trigger language plpgsql as $$
      begin
        if new.epoch > old.epoch then
          insert into claims values (new.name, new.version, new.epoch, new.owner);
        elsif new.checkpoint > old.checkpoint then
          insert into batches (name, version, epoch) values (new.name, new.version, new.epoch);
        end if;
        return null;
      end $$`,
  });
  await db.query({
    text: `
      create trigger note_batch after update on refold.processors
      for each row execute function note_batch()`,
  });
  const batchesOf = (writer: string) => db.query({ text: 'select from batches where writer = $1', values: [writer] });

  let owner = await startWorker('stopped-0');
  await moveOn();
  await whileAppending(async () => {
    for (let round = 1; round <= effort(3, 1); round++) {
      const next = await startWorker(`stopped-${round}`);
      // This stops it in the middle of its work, at any statement.
      const before = (await batchesOf(owner.owner)).length;
      await until(async () => (await batchesOf(owner.owner)).length > before);
      owner.signal('SIGSTOP');
      const saidBefore = owner.said.length;
      await until(async () => (await ownerOfAll()) === next.owner);
      await moveOn();
      owner.signal('SIGCONT');
      const woken = owner;
      await until(() => woken.said.some(({ msg }) => msg.includes('@1: trying again')));
      // Later it receives its share again, as any process does.
      await until(async () => (await readRegistry(db)).some((version) => version.owner === woken.owner));
      // It noticed by its own clock, or by the end of the transaction in which it was stopped. Only a statement that it was about to send is
      // left to the fence.
      const fenced = woken.said
        .slice(saidBefore)
        .filter(({ err }) => err?.message.includes('another owner has taken over'));
      expect(fenced.length).toBeLessThanOrEqual(1);
      await moveOn();
      await woken.end('SIGTERM');
      owner = next;
    }
  });
  await expectFolds();
  // It wrote only under epochs that it had received; under those from before the stop, it could not write.
  const foreign = await db.query({
    text: `
      select writer, owner
      from batches
      join claims using (name, version, epoch)
      where writer <> owner`,
  });
  expect(foreign).toEqual([]);
  await owner.end('SIGTERM');
}, 900_000); // as kill.test.ts
