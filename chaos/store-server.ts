import { createDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { embeddedBinaries, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { databaseUrl } from '../test/support/postgres-for-the-run.ts';
import { startTcpProxy, type TcpProxy } from '../test/support/tcp-proxy.ts';
import type { Network } from './server.ts';

/** The second PostgreSQL of a run: a read store, and the networks to it. */
export interface StoreServer {
  /** The URL of the store's database, through no network that a fault affects. */
  readonly url: string;
  readonly dataDirectory: string;
  /** A separate network for one process. */
  network(): Promise<Network>;
  restart(how: 'fast' | 'immediate'): Promise<void>;
  /** Ends the server, or silences all networks to it. Returns what brings it back. Restarts and other outages wait for that. */
  vanish(how: 'down' | 'silent'): Promise<() => Promise<void>>;
  close(options: { readonly keepFiles: boolean }): Promise<void>;
}

const name = 'refold_store';

/** Starts it, with a migrated database. */
export async function startStoreServer(): Promise<StoreServer> {
  const cluster = await startPostgresCluster({ binaries: await embeddedBinaries() });
  const url = databaseUrl(cluster.url, name);
  const admin = createDatabase({ url: cluster.url, applicationName: 'chaos' });
  await admin.query({ text: `create database ${name}` });
  await admin.close();
  await migrate(url);
  const proxies: TcpProxy[] = [];
  let last = Promise.resolve();

  /** Resolves when no other fault of the server is under way, with what ends this one. */
  async function turn(): Promise<() => void> {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    return resolve;
  }

  return {
    url,
    dataDirectory: cluster.dataDirectory,
    async network() {
      const proxy = await startTcpProxy(Number(new URL(url).port));
      proxies.push(proxy);
      return { proxy, url: proxy.through(url) };
    },
    async restart(how) {
      const done = await turn();
      await cluster.restart(how);
      done();
    },
    async vanish(how) {
      const done = await turn();
      if (how === 'down') await cluster.kill();
      else for (const proxy of proxies) proxy.swallow();
      return async () => {
        if (how === 'down') await cluster.restart();
        else for (const proxy of proxies) proxy.resume();
        done();
      };
    },
    async close(options) {
      for (const proxy of proxies) await proxy.close();
      await cluster.stop(options);
    },
  };
}
