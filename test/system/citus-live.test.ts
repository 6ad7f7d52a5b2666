import { afterAll } from 'vitest';
import { everySubscriber } from '../runtime/live/live-read-models.property.ts';
import { createLiveSetting } from '../runtime/live/live-setting.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

const placement = 'schema';

async function createStore() {
  const url = await cluster.createStore(placement);
  return { url, drop: async () => {} };
}

everySubscriber(() =>
  createLiveSetting(createStore, { log: undefined, storesOf: () => [], others: () => [], placement }),
);
