import pg from 'pg';
import { migrate } from '../../src/store/server/migrate.ts';
import { startOwnServer } from './own-server.ts';
import { databaseUrl } from './postgres-for-the-run.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import { until } from './until.ts';

/** A primary and an asynchronous standby, behind one address. */
export interface LosingServers {
  /** Leads to the server that is primary; a database with Refold's migrations. */
  url(database: string): string;
  /** Returns when the standby has everything written so far. After that it receives nothing. */
  cutOff(): Promise<void>;
  /** Kills the primary and promotes the standby, which lacks everything written since it was cut off. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

export async function startLosingServers(databases: readonly string[]): Promise<LosingServers> {
  const primary = await startOwnServer();
  const port = Number(new URL(primary.url).port);
  await withClient(primary.url, async (client) => {
    for (const name of databases) await client.query(`create database ${name}`);
  });
  for (const name of databases) await migrate(databaseUrl(primary.url, name));
  const replication = await startTcpProxy(port);
  const address = await startTcpProxy(port);
  const standby = await primary.startStandby(primary.url, replication.port);

  return {
    url: (database) => address.through(databaseUrl(primary.url, database)),
    async cutOff() {
      const written = await withClient(primary.url, async (client) => {
        const { rows } = await client.query<{ at: string }>('select pg_current_wal_lsn() as at');
        return rows[0]?.at;
      });
      await until(() =>
        withClient(standby.url, async (client) => {
          const { rows } = await client.query<{ has: boolean }>('select pg_last_wal_replay_lsn() >= $1 as has', [
            written,
          ]);
          return rows[0]?.has === true;
        }),
      );
      replication.swallow();
    },
    async failOver() {
      await primary.kill();
      replication.cutAll();
      await standby.promote();
      address.retarget(Number(new URL(standby.url).port));
      address.cutAll();
    },
    async stop() {
      await address.close();
      await replication.close();
      await standby.stop();
      await primary.stop();
    },
  };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
