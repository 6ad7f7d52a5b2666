import { afterAll, expect, test } from 'vitest';
import type { Projection } from '../../../src/index.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
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

async function partitions() {
  return (await readRegistry(db)).flatMap((version) => version.partitions);
}

test('processes that are killed and change the number of partitions leave every table equal to one fold of the log', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(log, 3_000, random);
  const alive: WorkerProcess[] = [];
  await underTraffic(
    log,
    random,
    async (head) => (await partitions()).every(({ checkpoint }) => head - checkpoint < 1_000n),
    async () => {
      for (let round = 0; round < effort(6, 3); round++) {
        // A process that starts brings a new number of partitions, and the running ones follow.
        const count = 1 + Math.floor(random() * 5);
        alive.push(
          await workers.start({ url: database.url, owner: `worker-${round}`, partitions: count, evolveSql: true }),
        );
        expect(new Set((await readRegistry(db)).map((version) => version.partitions.length))).toEqual(new Set([count]));
        const target = (await log.head()) + BigInt(Math.floor(random() * 200));
        await until(async () => (await partitions()).some(({ checkpoint }) => checkpoint >= target));
        if (alive.length > 2 || (alive.length > 1 && random() < 0.5)) {
          const [victim] = alive.splice(Math.floor(random() * alive.length), 1);
          await victim?.end(random() < 0.7 ? 'SIGKILL' : 'SIGTERM');
        }
      }
    },
  );
  const horizon = await log.horizon();
  await until(async () => (await partitions()).every(({ checkpoint }) => checkpoint >= horizon));
  for (const projection of [balanceV1, balanceV2, openingsV1] as Projection[]) {
    expect(await storedTable(db, projection), `${projection.id}, seed ${seed}`).toEqual(
      await foldedTable(log, projection),
    );
  }
  expect(await storedTable(db, totalsBySql), `${totalsBySql.id}, seed ${seed}`).toEqual(
    await foldedTable(log, totalsByEvolve),
  );
  expect((await partitions()).every(({ floors }) => floors.length === 0)).toBe(true);
  for (const worker of alive) await worker.end('SIGTERM');
}, 900_000); // as kill.test.ts
