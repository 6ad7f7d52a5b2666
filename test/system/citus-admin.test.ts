import { afterAll } from 'vitest';
import { actionsContract } from '../admin/actions-contract.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

// The admin API over versions whose tables are in a Citus cluster.
const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

actionsContract(async () => {
  const url = await cluster.createStore('schema');
  return { url, placement: 'schema', drop: async () => {} };
});
