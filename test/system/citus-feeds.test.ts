import { afterAll } from 'vitest';
import { changeFeedClients } from '../runtime/live/change-feed-clients.property.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

changeFeedClients(async () => {
  const placement = 'schema';
  const url = await cluster.createStore(placement);
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
});
