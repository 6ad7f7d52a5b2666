import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../src/store/embedded/embedded-postgres.ts';
import { openPool } from './open-pool.ts';
import { serverProcessor } from './server-processor.ts';

/**
 * The differences from PostgreSQL's defaults. Commits are durable, as in production: fsync and synchronous_commit stay on. The other settings
 * prevent a checkpoint or a full WAL during one contestant's turn, and allow the connections of all callers.
 */
export const serverSettings: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  max_connections: '200',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  checkpoint_timeout: '30min',
  autovacuum_naptime: '1d', // the logs are analyzed explicitly when they are complete
};

/** The PostgreSQL server of one benchmark run, with a database for each contestant. */
export interface BenchServer {
  readonly version: string;
  /** Creates an empty database with that name and a number, and returns its URL. It lives as long as the server. */
  createDatabase(name: string): Promise<string>;
  /** Writes dirty pages of earlier turns to disk, so no later turn pays for it. */
  settle(): Promise<void>;
  /** Microseconds of processor time that the server has used. */
  processor(): number;
  stop(): Promise<void>;
}

/** @param more settings of a scenario that needs a server of its own */
export async function startBenchServer(more?: Readonly<Record<string, string>>): Promise<BenchServer> {
  const dataDir = join(tmpdir(), `refold-bench-${process.pid}${more ? `-${randomUUID().slice(0, 8)}` : ''}`);
  const embedded = await startEmbeddedPostgres({ dataDir, settings: { ...serverSettings, ...more } });
  const admin = openPool(embedded.url, 2);
  const { rows } = await admin.query<{ server_version: string }>('show server_version');
  let databases = 0;
  return {
    version: rows[0]?.server_version ?? '',
    async createDatabase(name) {
      const numbered = `${name}_${++databases}`;
      await admin.query(`create database ${numbered}`);
      const url = new URL(embedded.url);
      url.pathname = `/${numbered}`;
      return url.href;
    },
    settle: async () => void (await admin.query('checkpoint')),
    processor: () => serverProcessor(embedded.dataDir),
    async stop() {
      await admin.end();
      await embedded.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
