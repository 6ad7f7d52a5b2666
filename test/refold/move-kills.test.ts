import { pino } from 'pino';
import { afterAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Projection } from '../../src/index.ts';
import { beginMove } from '../../src/runtime/moves/begin-move.ts';
import { openStores } from '../../src/runtime/stores/open-stores.ts';
import { createStoreFinder } from '../../src/runtime/stores/steps-of-stores.ts';
import type { StoredVersion } from '../../src/runtime/versions/registries.ts';
import { currentCopies } from '../../src/store/registry/copies.ts';
import { totalsByEvolve, totalsBySql } from '../support/account-totals.ts';
import { seeded, traffic, underTraffic } from '../support/account-traffic.ts';
import { databaseOfFile } from '../support/database-of-file.ts';
import { effort } from '../support/effort.ts';
import { followFeed } from '../support/feed-client.ts';
import { foldedTable, storedTable } from '../support/folded-table.ts';
import { startOwnServer } from '../support/own-server.ts';
import { account, balanceV1, balanceV2, openingsV1 } from '../support/sample-domain.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';
import { createWorkerProcesses, type WorkerProcess } from '../support/worker-processes.ts';

const { database, log } = await databaseOfFile(account);
const server = await startOwnServer();
const workers = createWorkerProcesses();
const inStore = (projection: Projection): Projection => Object.freeze({ ...projection, store: 'apart' });
const config = defineConfig({
  development: false, // the code of the workers is bundled, so it differs
  projections: [balanceV1, balanceV2, openingsV1, totalsBySql].map(inStore),
  database: { url: database.url },
  readStores: { apart: { url: server.url } },
  gateway: { port: 0 },
});
const databases = openStores(config, database.url);
const { stores } = databases;
const find = createStoreFinder(stores, config);
const logger = pino({ level: process.env.LOG ?? 'silent' });
afterAll(async () => {
  await workers.killAll();
  await databases.close();
  await server.stop();
});

const step = { actor: 'test', reason: 'to see' };

/** Moves all versions to the other store. Begins nothing while a move is under way, and does nothing while the store is away. */
async function moveAll(): Promise<void> {
  const copies = await find.copies();
  const current = currentCopies(copies);
  const here = new Set(current.map(({ store }) => store));
  if (copies.some(isArriving) || current.length < config.projections.length || here.size > 1) return;
  const to = here.has('apart') ? stores.home : stores.of({ store: 'apart' });
  const moving = config.projections.map(async (projection) => ({
    projection,
    from: await find.of(projection.name, projection.version),
  }));
  // A copy may have no owner at the moment, and the store may be restarting: the next round tries again.
  await beginMove(await Promise.all(moving), { to, readSchema: 'read_models', step }).catch(() => {});
}

const isArriving = ({ arrivingFrom, state }: StoredVersion) => arrivingFrom !== null && state !== 'retired';

async function isNear(head: bigint): Promise<boolean> {
  return (await find.copies()).every(
    ({ checkpoint, arrivingFrom }) => arrivingFrom !== null || head - checkpoint < 500n,
  );
}

async function haveReached(position: bigint): Promise<boolean> {
  const copies = await find.copies();
  const current = currentCopies(copies);
  return current.length === config.projections.length && current.every(({ checkpoint }) => checkpoint >= position);
}

test('versions moved back and forth, with workers killed and the store restarted at random, are the fold of the log in every copy', async () => {
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  await traffic(log, 500, random);
  const names = new Map<string, WorkerProcess>();
  const start = async (owner: string) => {
    const options = { url: database.url, storeUrl: server.url, evolveSql: true, runtime: { leaseSeconds: 2 }, owner };
    names.set(owner, await workers.start(options));
  };
  await start('worker-0');
  await until(async () => haveReached(await log.head()));
  const gateway = await createRefold(config, { logger, role: 'gateway' });
  const feed = followFeed(
    `${gateway.url}/graphql`,
    'balanceChanges { reset cursor changes { operation key { accountId } } }',
  );
  await underTraffic(log, random, isNear, async () => {
    for (let round = 1; round <= effort(12, 5); round++) {
      await start(`worker-${round}`);
      await moveAll();
      const head = await log.head();
      await until(() => haveReached(head));
      const owners = (await find.copies()).map(({ owner }) => owner);
      const owner = owners.find((one) => one !== null && names.has(one)) ?? `worker-${round - 1}`;
      if (round % 3 === 0) await server.restart(random() < 0.5 ? 'fast' : 'immediate');
      await names.get(owner)?.end('SIGKILL');
      names.delete(owner);
    }
  });
  const horizon = await log.horizon();
  await until(async () => !(await find.copies()).some(isArriving) && (await haveReached(horizon)));
  await until(async () =>
    (await find.copies()).every(({ checkpoint, state }) => state === 'retired' || checkpoint >= horizon),
  );
  const likes: readonly (readonly [Projection, Projection])[] = [
    [balanceV1, balanceV1],
    [balanceV2, balanceV2],
    [openingsV1, openingsV1],
    [totalsBySql, totalsByEvolve],
  ];
  const copies = await find.copies();
  for (const [projection, like] of likes) {
    const own = copies.filter(({ name, version }) => name === projection.name && version === projection.version);
    for (const { store, tableName } of own) {
      const stored = await storedTable(stores.of({ store }).db, { ...projection, tableName });
      expect(stored, `${projection.id} in ${store}, seed ${seed}`).toEqual(await foldedTable(log, like));
    }
  }
  // Each was in both stores.
  expect(copies).toHaveLength(2 * config.projections.length);
  const rows = await foldedTable(log, balanceV2);
  await until(() => feed.rows.size === rows.size);
  await feed.stop();
  await gateway.stop();
  for (const worker of names.values()) await worker.end('SIGTERM');
}, 900_000); // slow on a busy machine; only the result matters
