import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createDatabase, type Database } from '../src/store/postgres/database.ts';
import { embeddedBinaries, type PostgresCluster, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { databaseUrl } from '../test/support/postgres-for-the-run.ts';
import { startTcpProxy, type TcpProxy } from '../test/support/tcp-proxy.ts';
import { until } from '../test/support/until.ts';
import { type Disk, mountDisk } from './disk.ts';

/** The PostgreSQL of a run, and the networks to it. */
export interface Server {
  /** The URL of the application's database, through the network that no fault affects. */
  readonly url: string;
  readonly dataDirectory: string;
  /** The disk with the server's files, if this machine allows a disk that can be full; else the reason why not. */
  readonly disk: Disk | string;
  /** A separate network for one user of the database. */
  network(): Promise<Network>;
  restart(how: 'fast' | 'immediate'): Promise<void>;
  /** Leaves no room on the server's disk for so long. Starts the server again if it ended because of that. */
  runOutOfDisk(milliseconds: number): Promise<void>;
  /** Kills the primary and promotes a standby. */
  failOver(options: FailOverOptions): Promise<void>;
  close(options: { readonly keepFiles: boolean }): Promise<void>;
}

export interface Network {
  readonly proxy: TcpProxy;
  /** The application's database. */
  readonly url: string;
}

export interface FailOverOptions {
  /** The standby receives nothing while this waits, and so lacks the tail. Without it, the standby has every commit. */
  readonly losing: ((from: number) => Promise<void>) | undefined;
  /**
   * Called before anything else reaches the new primary. Commits from `from` on (milliseconds since 1970) may be lost.
   */
  promoted(standby: { readonly from: number; readonly db: Database }): Promise<void>;
  /** Called while the former primary runs once more, by itself, if the standby may lack what it had. The application runs meanwhile. */
  former(db: Database): Promise<void>;
}

const name = 'refold';

export async function startServer({ disk: wanted }: { readonly disk: boolean }): Promise<Server> {
  const disk = wanted ? mountDisk() : 'it was left out';
  const binaries = await embeddedBinaries();
  // A smaller write-ahead log, because a standby begins with a copy of it.
  const settings = { max_wal_size: '256MB' };
  let cluster: PostgresCluster = await startPostgresCluster({
    binaries,
    settings,
    ...(typeof disk === 'string' ? {} : { parentDirectory: disk.directory }),
  });
  const clusters = [cluster];
  const proxies: TcpProxy[] = [];

  async function network(): Promise<Network> {
    const proxy = await startTcpProxy(portOf(cluster));
    proxies.push(proxy);
    return { proxy, url: databaseUrl(proxy.through(cluster.url), name) };
  }

  const { url } = await network();
  const admin = createDatabase({ url: cluster.url, applicationName: 'chaos' });
  await admin.query({ text: `create database ${name}` });
  await admin.close();

  return {
    url,
    get dataDirectory() {
      return cluster.dataDirectory;
    },
    disk,
    network,
    restart: (how) => cluster.restart(how),
    async runOutOfDisk(milliseconds) {
      if (typeof disk === 'string') return;
      disk.fill();
      await pause(milliseconds);
      disk.free();
      await recovered(cluster);
    },
    async failOver({ losing, promoted, former }) {
      const between = await startTcpProxy(portOf(cluster));
      const standby = await cluster.startStandby(cluster.url, between.port);
      const own = createDatabase({ url: cluster.url, applicationName: 'chaos' });
      if (!losing) {
        await own.query({ text: `alter system set synchronous_standby_names = 'standby'` });
        await own.query({ text: 'select pg_reload_conf()' });
      }
      await until(() => streams(own, !losing));
      const from = Date.now();
      await standbyHasAll(own);
      await own.close();
      if (losing) {
        between.swallow();
        await losing(from);
      }
      const lost = cluster;
      await lost.kill();
      await standby.promote();
      cluster = standby;
      clusters.push(standby);
      await between.close();
      const db = createDatabase({ url: databaseUrl(standby.url, name), applicationName: 'chaos' });
      await promoted({ from, db });
      await db.close();
      for (const proxy of proxies) {
        proxy.retarget(portOf(standby));
        proxy.cutAll();
      }
      if (losing) await readOnce(lost, former);
      rmSync(lost.dataDirectory, { recursive: true, force: true });
    },
    async close({ keepFiles }) {
      for (const proxy of proxies) await proxy.close();
      for (const one of clusters.toReversed()) await one.stop({ keepFiles });
      if (typeof disk === 'string') return;
      if (keepFiles) disk.keep();
      else disk.unmount();
    },
  };
}

/** Starts a server that was killed, for one reader. */
async function readOnce(cluster: PostgresCluster, read: (db: Database) => Promise<void>): Promise<void> {
  await cluster.restart();
  const db = createDatabase({ url: databaseUrl(cluster.url, name), applicationName: 'chaos' });
  try {
    await read(db);
  } finally {
    await db.close();
    await cluster.kill();
  }
}

async function streams(db: Database, synchronously: boolean): Promise<boolean> {
  const found = await db.query({
    text: `select from pg_stat_replication where state = 'streaming' and (sync_state = 'sync' or not $1)`,
    values: [synchronously],
  });
  return found.length > 0;
}

/** Waits until the standby has all earlier commits. */
async function standbyHasAll(db: Database): Promise<void> {
  const [end] = await db.query<{ lsn: string }>({ text: 'select pg_current_wal_lsn()::text as lsn' });
  await until(async () => {
    const reached = await db.query({
      text: 'select from pg_stat_replication where flush_lsn >= $1::pg_lsn',
      values: [end?.lsn],
    });
    return reached.length > 0;
  });
}

/** A server that had no room for its write-ahead log has ended, or is in recovery. */
async function recovered(cluster: PostgresCluster): Promise<void> {
  for (;;) {
    if (cluster.ended) await cluster.restart();
    const db = createDatabase({ url: cluster.url, applicationName: 'chaos' });
    const answers = await db.query({ text: 'select' }).then(
      () => true,
      () => false,
    );
    await db.close();
    if (answers) return;
    await pause(20);
  }
}

function portOf(cluster: PostgresCluster): number {
  return Number(new URL(cluster.url).port);
}
