import type pg from 'pg';
import { migrate } from '../../src/store/server/migrate.ts';
import { openClient } from '../open-client.ts';
import { type BenchServer, startBenchServer } from '../server.ts';

/** A server that counts statements, with room for the connections of many processes. */
export function startCountingServer(): Promise<BenchServer> {
  return startBenchServer({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.max': '20000', // each table that is created is a statement of its own
    max_connections: '1500',
  });
}

/** A database whose statements are counted. */
export interface CountedDatabase {
  readonly url: string;
  /** For checks; what it runs does not count. */
  readonly client: pg.Client;
  /** The statements since the last call. */
  statements(): Promise<number>;
  /** The open connections of Refold. */
  connections(): Promise<number>;
  /** The bytes of WAL that the server has written so far. */
  wal(): Promise<number>;
  /** Waits until processes own this many units. */
  owned(units: number): Promise<void>;
}

export async function createCountedDatabase(server: BenchServer): Promise<CountedDatabase> {
  const url = await server.createDatabase('bench_many');
  await migrate(url);
  const client = await openClient(url);
  await client.query('create extension pg_stat_statements');
  await client.query(`set pg_stat_statements.track = 'none'`);
  const number = async (text: string) => Number((await client.query<{ n: string }>(text)).rows[0]?.n);
  const statements = async () => {
    const calls = await number(`
      select coalesce(sum(calls), 0) as n
      from pg_stat_statements
      join pg_database on pg_database.oid = dbid
      where datname = current_database()`);
    await client.query('select pg_stat_statements_reset()');
    return calls;
  };
  await statements();
  return {
    url,
    client,
    statements,
    connections: () =>
      number(
        `select count(*) as n from pg_stat_activity where datname = current_database() and application_name like 'refold%'`,
      ),
    wal: () => number(`select pg_current_wal_lsn() - '0/0'::pg_lsn as n`),
    async owned(units) {
      while ((await number(`select count(*) as n from refold.processors where status = 'running'`)) < units)
        await new Promise((resolve) => setTimeout(resolve, 20));
    },
  };
}
