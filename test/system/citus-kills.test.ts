import { afterAll } from 'vitest';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { readStoreKills } from '../refold/read-store-kills.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { effort } from '../support/effort.ts';

const cluster = await startCitusCluster();
const url = await cluster.createDatabase();
const placement = 'schema';
await migrateStore({ url, placement });
const nodes = [cluster.coordinator, ...cluster.workers];
await readStoreKills(
  {
    url,
    placement,
    async restart(random) {
      const node = nodes[Math.floor(random() * nodes.length)];
      await node?.restart(random() < 0.5 ? 'fast' : 'immediate');
    },
  },
  effort(30, 9),
);
afterAll(() => cluster.stop());
