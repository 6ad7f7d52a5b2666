import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createStalledCommits } from '../../src/store/append-queue/stalled-commits.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { grantsScript } from '../../src/store/server/grants.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { account, balanceV1, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

// What an administrator or a disk does to a server while an application runs on it.

let server: PostgresCluster;
let admin: pg.Client;
let refold: Refold;
const lines: string[] = [];
let opened = 0;

beforeAll(async () => {
  server = await startOwnServer();
  admin = new pg.Client({ connectionString: Object.assign(new URL(server.url), { pathname: '/postgres' }).href });
  await admin.connect();
  await admin.query('create database apart');
  await migrate(urlOf('apart'));
  const roles = { owner: 'app_owner', runtime: 'app', readOnly: 'app_reader' };
  for (const name of ['refold', 'apart'])
    await inDatabase(grantsScript({ ...roles, readSchema: 'read_models', textSearch: false }), name);
  refold = await createRefold(
    defineConfig({
      projections: [balanceV1, { ...openingsV1, store: 'apart' }],
      commands: [openAccount],
      database: { url: urlOf('refold', 'app') },
      readStores: { apart: { url: urlOf('apart', 'app') } },
      gateway: { port: 0 },
    }),
    { logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) }) },
  );
  await until(async () => (await health()).status === 200);
});
afterAll(async () => {
  await refold?.stop();
  await admin?.end();
  await server?.stop();
});

async function health() {
  const response = await fetch(`${refold.url}/health/ready`);
  return { status: response.status, body: await response.text() };
}

async function mutate() {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      query: `mutation { openAccount(input: { accountId: "a${opened++}", owner: "Ada" }) { position } }`,
    }),
  });
  return (await response.json()) as { errors?: { extensions: { code: string } }[] };
}

function urlOf(database: string, username?: string): string {
  return Object.assign(new URL(server.url), { pathname: `/${database}`, ...(username && { username }) }).href;
}

/** As the superuser, in the application's database, or another one, over a connection of its own. */
async function inDatabase(text: string, name = 'refold'): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf(name) });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

const faults: readonly {
  what: string;
  begin: () => Promise<unknown>;
  end: () => Promise<unknown>;
  says: RegExp;
  logs?: RegExp;
  /** Whether mutations are refused. */
  refuses: boolean;
}[] = [
  {
    what: 'a revoked right',
    begin: () => inDatabase('revoke insert on refold.events from app'),
    end: () => inDatabase('grant insert on refold.events to app'),
    says: /the role lacks privileges/,
    logs: /appends can't be written: the role app lacks privileges.*`grant insert on refold.events to app`/,
    refuses: true,
  },
  {
    what: 'a database that accepts no new connections',
    begin: () => admin.query('alter database refold allow_connections false'),
    end: () => admin.query('alter database refold allow_connections true'),
    says: /the database accepts no new connections/,
    refuses: false,
  },
  {
    what: 'a synchronous standby that is away',
    begin: async () => {
      await admin.query(`alter system set synchronous_standby_names = 'away'`);
      await admin.query('select pg_reload_conf()');
    },
    end: async () => {
      await admin.query('alter system reset synchronous_standby_names');
      await admin.query('select pg_reload_conf()');
    },
    says: /commits wait for a synchronous standby that is away/,
    refuses: true,
  },
];

test.for(faults)('$what: not ready, with the reason, and ready again when it is over', async ({
  begin,
  end,
  says,
  logs,
  refuses,
}) => {
  expect((await mutate()).errors).toBeUndefined();
  await begin();
  try {
    if (refuses) await until(async () => (await mutate()).errors?.[0]?.extensions.code === 'DATABASE_UNAVAILABLE');
    const found = await until(async () => {
      const now = await health();
      return now.status === 503 && says.test(now.body) && now;
    });
    expect(found.body).not.toContain('grant');
    if (logs) await until(() => lines.some((line) => logs.test(line)));
  } finally {
    await end();
  }
  await until(async () => (await health()).status === 200);
  expect((await mutate()).errors).toBeUndefined();
});

test('a revoked right in a read store is named with its statement, and mutations and lists go on', async () => {
  const openings = async () => (await refold.status()).find(({ name }) => name === 'openings');
  await inDatabase('revoke insert on refold.changes from app', 'apart');
  try {
    const named = await until(async () => {
      const { readStores } = JSON.parse((await health()).body);
      return readStores;
    });
    expect(named).toEqual({ apart: 'the role lacks privileges' });
    expect((await health()).status).toBe(200);
    const says =
      /^the read store 'apart' can't be written: the role app lacks .*`grant insert on refold.changes to app`/;
    await until(() => lines.some((line) => says.test(line)));
    expect((await mutate()).errors).toBeUndefined();
    // It responds, so lists have its versions.
    expect(await openings()).toMatchObject({ store: 'apart' });
  } finally {
    await inDatabase('grant insert on refold.changes to app', 'apart');
  }
  await until(async () => JSON.parse((await health()).body).readStores === undefined);
});

test('an append whose commit waits for a standby is answered: it may be written', async () => {
  const db = createDatabase({ url: server.url, maxConnections: 3 });
  const stalled = createStalledCommits();
  const log = createEventLog(db, [account], { unlessStalled: stalled.run });
  const append = (streamId: string) =>
    log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'Ada' } }] }).then(
      () => 'written',
      (error: { code?: string }) => error.code,
    );
  await admin.query(`alter system set synchronous_standby_names = 'away'`);
  await admin.query('select pg_reload_conf()');
  try {
    const first = await until(async () => {
      const appending = append(`b${opened++}`);
      const waits = until(async () => {
        const { rows } = await admin.query(`select from pg_stat_activity where wait_event = 'SyncRep'`);
        return rows.length > 0 && 'waits';
      });
      return (await Promise.race([appending, waits])) === 'waits' && { appending };
    });
    stalled.waitFor('commits wait');
    expect(await first.appending).toBe('OUTCOME_UNKNOWN');
    expect(await append('never')).toBe('DATABASE_UNAVAILABLE');
    const owner = 'Ada';
    const inOwn = db.transaction((tx) =>
      log.append({ family: account, streamId: 'never', events: [{ type: 'Opened', payload: { owner } }] }, tx),
    );
    await expect(inOwn).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  } finally {
    await admin.query('alter system reset synchronous_standby_names');
    await admin.query('select pg_reload_conf()');
  }
  stalled.waitFor(undefined);
  expect(await append(`b${opened++}`)).toBe('written');
  expect(await log.streamVersion(account, `b${opened - 2}`)).toBe(1);
  expect(await log.streamVersion(account, 'never')).toBe(0);
  await db.close();
  await until(async () => (await health()).status === 200);
});

test('damaged data has a code that clients know, and the instance is not ready', async () => {
  // The code of a damaged page, from where the page would be read.
  await inDatabase(`
    create function damaged() returns trigger language plpgsql as $$ begin raise 'invalid page in block 0' using errcode = 'XX001'; end $$;
    create trigger damaged before insert on refold.events for each statement execute function damaged()`);
  try {
    expect((await mutate()).errors).toMatchObject([{ extensions: { code: 'DATABASE_UNAVAILABLE' } }]);
    expect((await health()).status).toBe(503);
  } finally {
    await inDatabase('drop function damaged() cascade');
  }
  expect((await mutate()).errors).toBeUndefined();
  expect((await health()).status).toBe(200);
});

test('a new session that the database refuses is an outage, not an internal error', async () => {
  await admin.query('alter database refold allow_connections false');
  try {
    // Idle connections end; those that come next are refused.
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'refold' and usename = 'app'`,
    );
    await until(async () => (await mutate()).errors?.[0]?.extensions.code === 'DATABASE_UNAVAILABLE');
    await until(async () => (await health()).status === 503);
  } finally {
    await admin.query('alter database refold allow_connections true');
  }
  await until(async () => (await health()).status === 200);
});
