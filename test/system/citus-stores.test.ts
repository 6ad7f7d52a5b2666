import { afterAll } from 'vitest';
import { readStoresContract } from '../refold/read-stores.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

readStoresContract(async () => {
  const placement = 'schema';
  const url = await cluster.createStore(placement);
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
});
