import { afterAll, expect } from 'vitest';
import { migrateStore } from '../../src/store/citus/place-store.ts';
import { readStoreNetwork } from '../refold/read-store-network.ts';
import { portOf, startCitusCluster } from '../support/citus-cluster.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const cluster = await startCitusCluster();
const networks = await Promise.all(
  cluster.workers.map(async (worker) => ({ worker, proxy: await startTcpProxy(portOf(worker)) })),
);
afterAll(async () => {
  await cluster.stop();
  for (const { proxy } of networks) await proxy.close();
});

readStoreNetwork(async () => {
  const url = await cluster.createDatabase(
    (worker) => networks.find((network) => network.worker === worker)?.proxy.port ?? portOf(worker),
  );
  const placement = 'schema';
  await migrateStore({ url, placement });
  const [holder] = await cluster.run<{ port: number }>(
    url,
    "select nodeport as port from citus_shards where table_name = 'refold.projections'::regclass",
  );
  const inside = networks.map(({ proxy }) => proxy).find(({ port }) => port === holder?.port) ?? expect.unreachable();
  const { kill, restart } = cluster.coordinator;
  return { url, placement, kill, restart, stop: async () => {}, inside };
});
