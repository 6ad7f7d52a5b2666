import { afterAll } from 'vitest';
import { changeFeedClients } from '../runtime/live/change-feed-clients.property.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

// The rows of `balance` are distributed over the workers.
changeFeedClients(async () => {
  const placement = 'partition';
  const url = await cluster.createStore(placement);
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
}, 3);
