import { afterAll, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { seeded, traffic, underTraffic } from '../../support/account-traffic.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

const { database, db, log } = await databaseOfFile(account);
const workers = createWorkerProcesses();
afterAll(() => workers.killAll());

async function checkpoints(): Promise<bigint[]> {
  const versions = await readRegistry(db);
  return versions.length === 0 ? [0n] : versions.map((version) => version.checkpoint);
}

test('workers killed at random points of catch-up and live traffic leave every read table equal to one fold of the log', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(log, 5_000, random);
  const names = new Map<string, WorkerProcess>();
  await underTraffic(
    log,
    random,
    async (head) => (await checkpoints()).every((checkpoint) => head - checkpoint < 500n),
    async () => {
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
    },
  );
  const horizon = await log.horizon();
  await until(async () => (await checkpoints()).every((checkpoint) => checkpoint >= horizon));
  for (const projection of [balanceV1, balanceV2, openingsV1] as Projection[]) {
    expect(await storedTable(db, projection), `${projection.id}, seed ${seed}`).toEqual(
      await foldedTable(log, projection),
    );
  }
  for (const worker of names.values()) await worker.end('SIGTERM');
}, 900_000); // slow on a busy machine; only the result matters
