import { afterAll } from 'vitest';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { changeFeedClients } from '../runtime/live/change-feed-clients.property.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

// The rows of `balance` are distributed over the workers.
changeFeedClients(async () => {
  const url = await cluster.createDatabase();
  const placement = 'partition';
  await migrateStore({ url, placement });
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
}, 3);
