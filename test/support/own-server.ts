import pg from 'pg';
import { inject } from 'vitest';
import { migrate } from '../../src/store/server/migrate.ts';
import { embeddedBinaries, type PostgresCluster, startPostgresCluster } from './postgres-cluster.ts';
import { databaseUrl } from './postgres-for-the-run.ts';

export interface OwnServerOptions {
  /** Server settings, as in `postgresql.conf`, for instance `{ wal_level: 'logical' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * A whole PostgreSQL server for one test file: for tests that hold transactions open, or restart or kill the server.
 * Its `url` is a database with Refold's migrations applied. The file that starts it stops it, in `afterAll`.
 */
export async function startOwnServer(options: OwnServerOptions = {}): Promise<PostgresCluster> {
  const ofTheRun = inject('postgres');
  const binaries = ofTheRun.binaries ?? (await embeddedBinaries());
  const cluster = await startPostgresCluster({ binaries, settings: { ...ofTheRun.settings, ...options.settings } });
  try {
    const client = new pg.Client({ connectionString: cluster.url, application_name: 'test-harness' });
    await client.connect();
    await client.query('create database refold');
    await client.end();
    const url = databaseUrl(cluster.url, 'refold');
    await migrate(url);
    return { ...cluster, url };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
