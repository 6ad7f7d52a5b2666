import { afterAll, expect, test } from 'vitest';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
import { seeded, traffic, underTraffic } from '../../support/account-traffic.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { foldedTable, storedTable } from '../../support/folded-table.ts';
import { account } from '../../support/sample-domain.ts';
import { seed } from '../../support/seed.ts';
import { until } from '../../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts';

const { database, db, log } = await databaseOfFile(account);
const workers = createWorkerProcesses();
afterAll(() => workers.killAll());

async function totals() {
  return (await readRegistry(db)).find(({ name }) => name === totalsBySql.name);
}

test('workers killed at random points of their SQL leave the read table equal to one fold of the log, event by event', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(log, 3_000, random);
  const running = new Map<string, WorkerProcess>();
  await underTraffic(
    log,
    random,
    async (head) => head - ((await totals())?.checkpoint ?? head) < 500n,
    async () => {
      const start = async (owner: string) =>
        void running.set(owner, await workers.start({ url: database.url, owner, evolveSql: true }));
      await start('worker-0');
      for (let round = 1; round <= effort(4, 2); round++) {
        await start(`worker-${round}`);
        const before = (await totals())?.checkpoint ?? 0n;
        const target = BigInt(Math.floor(random() * 300));
        await until(async () => ((await totals())?.checkpoint ?? 0n) - before > target);
        const owner = await until(async () => {
          const name = (await totals())?.owner;
          return name !== null && name !== undefined && running.has(name) && name;
        });
        await running.get(owner)?.end('SIGKILL');
        running.delete(owner);
        // The survivor takes over.
        const horizon = await log.horizon();
        await until(async () => ((await totals())?.checkpoint ?? 0n) >= horizon);
      }
    },
  );
  const horizon = await log.horizon();
  await until(async () => ((await totals())?.checkpoint ?? 0n) >= horizon);
  expect(await storedTable(db, totalsBySql), `seed ${seed}`).toEqual(await foldedTable(log, totalsByEvolve));
  for (const worker of running.values()) await worker.end('SIGTERM');
}, 900_000); // slow on a busy machine; only the result matters
