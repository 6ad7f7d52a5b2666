import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { installAudit } from '../chaos/audit.ts';
import { families } from '../chaos/domain.ts';
import { createEventLog, type EventLog } from '../src/store/event-log.ts';
import { createDatabase, type Database } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { families as thingFamilies } from '../test/refold/things.ts';
import { type PgBouncer, startPgBouncer } from '../test/support/pgbouncer.ts';
import { type PostgresCluster, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { databaseUrl } from '../test/support/postgres-for-the-run.ts';

const binaries = { initdb: '/usr/lib/postgresql/15/bin/initdb', postgres: '/usr/lib/postgresql/15/bin/postgres' };
const pgbouncer = '/usr/sbin/pgbouncer';
// PostgreSQL's defaults, as on a server that nobody has configured.
const settings = { fsync: 'on', max_connections: '100', shared_buffers: '128MB' };

/** A server from Debian's packages, with the application's database. */
export interface World {
  readonly cluster: PostgresCluster;
  readonly url: string;
  /** For sampling and checks. */
  readonly db: Database;
  readonly log: EventLog;
  pooler(): Promise<PgBouncer>;
  close(options: { readonly keepFiles: boolean }): Promise<void>;
}

export async function createWorld(): Promise<World> {
  for (const program of [...Object.values(binaries), pgbouncer])
    if (!existsSync(program))
      throw new Error(
        `Expected ${program}. Install it with: apt-get install --no-install-recommends postgresql-15 pgbouncer`,
      );
  const cluster = await startPostgresCluster({ binaries, settings, parentDirectory: tmpdir() });
  const admin = new pg.Client({ connectionString: cluster.url });
  await admin.connect();
  await admin.query('create database refold');
  await admin.end();
  const url = databaseUrl(cluster.url, 'refold');
  await migrate(url);
  const db = createDatabase({ url, applicationName: 'soak' });
  await installAudit(db);
  // A row per batch would be a large part of what is measured: only new owners of reactors are recorded.
  await db.query({ text: 'drop trigger note_step on refold.processors' });
  await db.query({ text: 'drop trigger note_step on refold.reactors' });
  await db.query({
    text: `create trigger note_step after update on refold.reactors
      for each row when (old.epoch <> new.epoch) execute function chaos.note_reactor_step()`,
  });
  let pooler: PgBouncer | undefined;
  return {
    cluster,
    url,
    db,
    log: createEventLog(db, [...families, ...Object.values(thingFamilies)]),
    async pooler() {
      pooler ??= await startPgBouncer(pgbouncer, url);
      return pooler;
    },
    async close({ keepFiles }) {
      await db.close();
      await pooler?.stop();
      await cluster.stop({ keepFiles });
    },
  };
}
