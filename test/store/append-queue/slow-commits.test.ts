import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Projection, type Refold } from '../../../src/index.ts';
import { createEventLog, type EventLogOptions } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { open } from '../../support/inline-setting.ts';
import { startOwnServer } from '../../support/own-server.ts';
import type { PostgresCluster } from '../../support/postgres-cluster.ts';
import { account } from '../../support/sample-domain.ts';
import { until } from '../../support/until.ts';

let server: PostgresCluster;
let admin: pg.Client;
let refold: Refold;
let db: Database;

beforeAll(async () => {
  server = await startOwnServer();
  admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  await admin.query('alter database refold set synchronous_commit = local');
  refold = await createRefold(
    defineConfig({ projections: [inlineBalance], events: [account], database: { url: server.url } }),
    { logger: pino({ level: 'silent' }) },
  );
  await until(async () => (await refold.status()).every(({ inline }) => inline === 'live'));
  db = createDatabase({ url: server.url });
});
afterAll(async () => {
  await db?.close();
  await refold?.stop();
  await admin?.end();
  await server?.stop();
});

/** A commit that notifies, and lasts until `end`: it waits for a standby that is not there. The server lets one such commit proceed at a time. */
async function slowCommit(): Promise<{ end(): Promise<void> }> {
  await admin.query(`alter system set synchronous_standby_names = 'away'`);
  await admin.query('select pg_reload_conf()');
  const client = new pg.Client({ connectionString: server.url, application_name: 'slow' });
  await client.connect();
  await client.query('set synchronous_commit = on');
  const committed = client.query(`create table slow (); drop table slow; notify slow`);
  await until(async () => (await admin.query(`select from pg_stat_activity where wait_event = 'SyncRep'`)).rowCount);
  return {
    async end() {
      await admin.query('alter system reset synchronous_standby_names');
      await admin.query('select pg_reload_conf()');
      await committed;
      await client.end();
    },
  };
}

const kinds: readonly (readonly [string, readonly Projection[]])[] = [
  ['appends', []],
  ['appends with inline rows', [inlineBalance]],
];

test.each(
  kinds,
)('%s wait for the commit of another transaction, and draw their positions once', async (_, projections) => {
  let failed = 0;
  const onSent: EventLogOptions['onSent'] = ({ error }) => {
    if (error !== undefined) failed++;
  };
  const inline = { db, readSchema: 'read_models', projections, freeze: false };
  const log = createEventLog(db, [account], { onSent, ...(projections.length > 0 ? { inline } : {}) });
  const before = await log.head();
  const slow = await slowCommit();
  const names = Array.from({ length: 12 }, (__, number) => `${projections.length} ${number}`);
  const appends = Promise.allSettled(names.map((name) => open({ log }, name)));
  // Longer than joined appends wait for what another transaction has locked.
  const waits = `select from pg_locks where not granted and waitstart < clock_timestamp() - interval '300 ms'`;
  await until(async () => failed > 0 || (await admin.query(waits)).rowCount);
  await slow.end();
  const outcomes = await appends;
  expect(failed).toBe(0);
  expect(outcomes.map(({ status }) => status)).toEqual(names.map(() => 'fulfilled'));
  expect(await log.head()).toBe(before + BigInt(names.length));
});
