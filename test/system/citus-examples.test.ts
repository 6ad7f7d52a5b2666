import { afterAll, describe } from 'vitest';
import type { Placement } from '../../src/config/read-store-options.ts';
import { examplesApart } from '../examples/apart.ts';
import { startCitusCluster } from '../support/citus-cluster.ts';
import type { StoreServer } from '../support/store-setting.ts';

const cluster = await startCitusCluster();
afterAll(() => cluster.stop());

const startStore = (placement: Placement) => async (): Promise<StoreServer> => {
  const url = await cluster.createStore(placement);
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {} };
};

describe('on one worker', () => examplesApart(startStore('schema')));
describe('distributed over the workers', () => examplesApart(startStore('partition'), 4));
