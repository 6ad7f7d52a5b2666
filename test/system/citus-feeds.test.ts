import { afterAll } from 'vitest';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { changeFeedClients } from '../runtime/live/change-feed-clients.property.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

changeFeedClients(async () => {
  const url = await cluster.createDatabase();
  const placement = 'schema';
  await migrateStore({ url, placement });
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
});
