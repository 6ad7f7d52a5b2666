import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { findCitus } from './citus-engine.ts';
import { type PostgresBinaries, type PostgresCluster, startPostgresCluster } from './postgres-cluster.ts';
import { databaseUrl } from './postgres-for-the-run.ts';
import { until } from './until.ts';

/** A Citus cluster on 127.0.0.1. */
export interface CitusCluster {
  readonly coordinator: PostgresCluster;
  readonly workers: readonly PostgresCluster[];
  /**
   * Creates a database with Citus on every node, and returns its URL at the coordinator.
   *
   * @param portOfWorker where the coordinator reaches a worker; by default directly
   */
  createDatabase(portOfWorker?: (worker: PostgresCluster) => number): Promise<string>;
  /** Runs statements at the coordinator, or at another node, and returns the rows of the last one. */
  run<Row extends object>(url: string, statements: string, at?: PostgresCluster): Promise<Row[]>;
  /** Removes what former moves of shards have left. Until then, no shard can be moved back to that place. */
  cleanUp(url: string): Promise<void>;
  stop(): Promise<void>;
}

const settings = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical', // to move shards while they are written to
  max_prepared_transactions: '200',
  max_connections: '200',
  max_worker_processes: '40', // every database has a maintenance daemon on every node
  'citus.shard_count': '8',
  'citus.enable_statistics_collection': 'off',
  'citus.node_conninfo': 'sslmode=disable',
  'citus.recover_2pc_interval': '1s',
};

export async function startCitusCluster({ workers: count = 2 } = {}): Promise<CitusCluster> {
  const binaries = installCitus();
  const nodes: PostgresCluster[] = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const started = await Promise.allSettled(
    Array.from({ length: count + 1 }, async () => {
      const node = await startPostgresCluster({ binaries, settings });
      nodes.push(node);
      return node;
    }),
  );
  const failed = started.find((one) => one.status === 'rejected');
  const [coordinator, ...workers] = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (failed || !coordinator) {
    await stop();
    throw failed?.reason ?? new Error('The cluster has no node.');
  }
  return {
    coordinator,
    workers,
    stop,
    // The cluster also does it by itself at any time; then this does nothing, and has to wait.
    async cleanUp(url) {
      await until(async () => {
        await runAt(url, 'call citus_cleanup_orphaned_resources()');
        const [left] = await runAt<{ records: number }>(url, 'select count(*)::int as records from pg_dist_cleanup');
        return left?.records === 0;
      });
    },
    async createDatabase(portOfWorker = portOf) {
      const name = `refold_${randomBytes(6).toString('hex')}`;
      for (const node of [coordinator, ...workers]) {
        await runAt(node.url, `create database ${name} template template0`);
        await runAt(databaseUrl(node.url, name), 'create extension citus');
      }
      const url = databaseUrl(coordinator.url, name);
      const nodesToAdd = workers.map((node) => `select citus_add_node('127.0.0.1', ${portOfWorker(node)})`);
      await runAt(url, `select citus_set_coordinator_host('127.0.0.1', ${portOf(coordinator)})`);
      for (const statement of nodesToAdd) await runAt(url, statement);
      return url;
    },
    run: (url, statements, at) => runAt(at ? databaseUrl(at.url, new URL(url).pathname.slice(1)) : url, statements),
  };
}

export function portOf({ url }: Pick<PostgresCluster, 'url'>): number {
  return Number(new URL(url).port);
}

async function runAt<Row extends object>(url: string, statements: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-harness' });
  await client.connect();
  try {
    const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(statements);
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? [];
  } finally {
    await client.end();
  }
}

/** The programs of a server that has Citus. */
function installCitus(): PostgresBinaries {
  const { binaries, archive, missing } = findCitus();
  if (missing !== undefined) throw new Error(`Expected Citus, but ${missing}.`);
  // It only adds files.
  if (archive !== undefined) execFileSync('tar', ['xJf', archive, '-C', '/']);
  return binaries;
}
