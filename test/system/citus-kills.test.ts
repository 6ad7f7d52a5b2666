import { afterAll } from 'vitest';
import { readStoreKills } from '../refold/read-store-kills.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import { effort } from '../support/effort.ts';

const cluster = await startCitusCluster();
const placement = 'schema';
const url = await cluster.createStore(placement);
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
