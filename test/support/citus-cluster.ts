import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Placement } from '../../src/config/read-store-options.ts';
import { migrateStore } from '../../src/store/citus/place-store.ts';
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
  /** Creates a migrated database for a read store: on every node, a copy of the first one with this placement. */
  createStore(placement: Placement): Promise<string>;
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
  return clusterOf(coordinator, workers, stop);
}

function clusterOf(
  coordinator: PostgresCluster,
  workers: readonly PostgresCluster[],
  stop: () => Promise<void>,
): CitusCluster {
  const nodes = [coordinator, ...workers];
  const templates = new Map<Placement, Promise<string>>();

  const createDatabase: CitusCluster['createDatabase'] = async (portOfWorker = portOf) => {
    const name = newName();
    for (const node of nodes) {
      await runAt(node.url, `create database ${name} template template0`);
      await runAt(databaseUrl(node.url, name), 'create extension citus');
    }
    const url = databaseUrl(coordinator.url, name);
    const nodesToAdd = workers.map((node) => `select citus_add_node('127.0.0.1', ${portOfWorker(node)})`);
    await runAt(url, `select citus_set_coordinator_host('127.0.0.1', ${portOf(coordinator)})`);
    for (const statement of nodesToAdd) await runAt(url, statement);
    return url;
  };

  async function createTemplate(placement: Placement): Promise<string> {
    const url = await createDatabase();
    await migrateStore({ url, placement });
    const name = nameIn(url);
    for (const node of nodes) await runAt(node.url, `alter database ${name} allow_connections false`);
    return name;
  }

  return {
    coordinator,
    workers,
    stop,
    createDatabase,
    async createStore(placement) {
      const found = templates.get(placement) ?? createTemplate(placement);
      templates.set(placement, found);
      const template = await found;
      const name = newName();
      await Promise.all(nodes.map((node) => copyDatabase(node, template, name)));
      return databaseUrl(coordinator.url, name);
    },
    // The cluster also does it by itself at any time; then this does nothing, and has to wait.
    async cleanUp(url) {
      await until(async () => {
        await runAt(url, 'call citus_cleanup_orphaned_resources()');
        const [left] = await runAt<{ records: number }>(url, 'select count(*)::int as records from pg_dist_cleanup');
        return left?.records === 0;
      });
    },
    run: (url, statements, at) => runAt(at ? databaseUrl(at.url, nameIn(url)) : url, statements),
  };
}

export function portOf({ url }: Pick<PostgresCluster, 'url'>): number {
  return Number(new URL(url).port);
}

const newName = () => `refold_${randomBytes(6).toString('hex')}`;
const nameIn = (url: string) => new URL(url).pathname.slice(1);

/** A template may have no session, and Citus maintains it in one, which comes again by itself. */
async function copyDatabase({ url }: PostgresCluster, template: string, name: string): Promise<void> {
  await runAt(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${template}'`);
  await runAt(url, `create database ${name} template ${template} strategy file_copy`);
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
