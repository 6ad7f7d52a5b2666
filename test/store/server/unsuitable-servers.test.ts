import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { defineConfig } from '../../../src/index.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { type ConnectionOptions, createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/server/migrate.ts';
import { checkServer, readAppendProblem } from '../../../src/store/server/server-check.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { creditOf, expectRight, open, statusOf, untilLive } from '../../support/inline-setting.ts';
import { databaseUrl } from '../../support/postgres-for-the-run.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { dropDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const { adminUrl, prefix } = inject('postgres');
let admin: pg.Client;

beforeAll(async () => {
  admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
});
afterAll(() => admin.end());

/** Dropped with the test, like the databases created from it. */
async function newDatabase(options = ''): Promise<{ name: string; url: string }> {
  const name = `${prefix}unsuitable_${randomBytes(3).toString('hex')}`;
  await admin.query(`create database ${name} ${options}`);
  onTestFinished(() => dropDatabase(adminUrl, name));
  return { name, url: databaseUrl(adminUrl, name) };
}

function openDatabase(url: string, options: Partial<ConnectionOptions> = {}): Database {
  const db = createDatabase({ url, ...options });
  onTestFinished(() => db.close());
  return db;
}

test.for([
  'LATIN1',
  'SQL_ASCII',
])('a database with the encoding %s is refused before anything is written', async (encoding) => {
  const { url } = await newDatabase(`encoding '${encoding}' locale 'C' template template0`);
  const db = openDatabase(url);
  const refusal = {
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringContaining(`the encoding of the database is ${encoding}, which can't hold every text`),
  };
  await expect(migrate(db)).rejects.toMatchObject(refusal);
  await expect(checkServer(db, 'read_models')).rejects.toMatchObject(refusal);
  expect(await db.query({ text: "select to_regnamespace('refold')::text as schema" })).toEqual([{ schema: null }]);
});

test.for<[what: string, settings: Readonly<Record<string, string>>, message: string, sessions: boolean]>([
  ['read-only', { default_transaction_read_only: 'on' }, 'the database is read-only', true],
  ['without triggers', { session_replication_role: 'replica' }, 'session_replication_role is replica', true],
  [
    'under another isolation level that sessions can’t set',
    { default_transaction_isolation: 'serializable' },
    "statements run with default_transaction_isolation = 'serializable'; Refold needs 'read committed'",
    false,
  ],
  [
    'without nulls in arrays where sessions can’t set it',
    { default_transaction_isolation: 'read committed', array_nulls: 'off' },
    "statements run with array_nulls = 'off'; Refold needs 'on'",
    false,
  ],
])('a database that is %s is refused', async ([, settings, message, sessions]) => {
  const options = { sessions };
  const { name, url } = await newDatabase(`template ${inject('postgres').template}`);
  for (const [setting, value] of Object.entries(settings))
    await admin.query(`alter database ${name} set ${setting} = '${value}'`);
  const refusal = { code: 'DATABASE_UNSUITABLE', message: expect.stringContaining(message) };
  await expect(checkServer(openDatabase(url, options), 'read_models')).rejects.toMatchObject(refusal);
  await expect(migrate(openDatabase(url, options))).rejects.toMatchObject(refusal);
});

test('an error lists what a role without ownership lacks, and the role needs nothing more', async () => {
  const { name, url } = await newDatabase(`template ${inject('postgres').template}`);
  const role = `${prefix}app`;
  const password = new URL(url).password;
  await admin.query(`create role ${role} login${password === '' ? '' : ` password '${decodeURIComponent(password)}'`}`);
  const owner = openDatabase(url);
  onTestFinished(async () => {
    await owner.query({ text: `drop owned by ${role}` });
    await owner.query({ text: `drop role ${role}` });
  });
  await owner.query({ text: 'create schema if not exists read_models' });
  const asRole = Object.assign(new URL(url), { username: role }).href;
  const db = openDatabase(asRole);
  const refused = await checkServer(db, 'read_models').catch((error: Error) => error.message);
  expect(refused).toContain(
    `the role ${role} lacks privileges. As their owner run \`grant usage, create on schema read_models to ${role}\``,
  );
  expect(refused).toContain(`\`grant select, insert on refold.events to ${role}\``);
  expect(refused).not.toContain('on database');
  // The grants in the message are sufficient.
  for (const [, grant = ''] of String(refused).matchAll(/`(grant [^`]*)`/g)) await owner.query({ text: grant });
  await checkServer(db, 'read_models');
  await expect(checkServer(db, 'elsewhere')).rejects.toMatchObject({
    message: expect.stringContaining(`\`grant create on database ${name} to ${role}\``),
  });

  const runtime = await startRuntime({
    config: defineConfig({ projections: [inlineBalance, balanceV1], events: [account] }),
    url: asRole,
    owner: 'test',
    development: false,
    maintain: true,
    serves: true,
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => runtime.stop());
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'account-1');
  await runtime.log.append({ ...creditOf('account-1'), idempotencyKey: 'once' });
  await requestRebuild(runtime.db, balanceV1, 'read_models', { actor: 'ann', reason: 'a test' });
  await until(async () => (await statusOf(runtime, balanceV1))?.rebuild === null);
  await until(async () => (await statusOf(runtime, balanceV1))?.lag === 0n);
  for (const projection of [inlineBalance, balanceV1]) await expectRight(runtime, projection);
  await runtime.stop();
});

test.for<[object: string, statement: string]>([
  ['table pg_locks', 'create table app.pg_locks (pid integer)'],
  ['type text', 'create domain app.text as pg_catalog.text'],
  ['function now', 'create function app.now() returns timestamptz language sql as $$ select null::timestamptz $$'],
  ['operator =', 'create operator app.= (leftarg = bigint, rightarg = bigint, function = pg_catalog.int8ne)'],
])('a search_path under which the %s of another schema is used is refused, with who has set it and the repair', async ([
  object,
  statement,
]) => {
  const { name, url } = await newDatabase(`template ${inject('postgres').template}`);
  const owner = openDatabase(url);
  await owner.query({ text: 'create schema app' });
  await owner.query({ text: statement });
  const role = new URL(url).username;
  const path = 'app, public, pg_catalog';
  const sources: readonly (readonly [from: string, target: string])[] = [
    [`for the database ${name}`, `database ${name}`],
    [`for the role ${role} in the database ${name}`, `role ${role} in database ${name}`],
  ];
  for (const [from, target] of sources) {
    await admin.query(`alter ${target} set search_path = ${path}`);
    await expect(checkServer(openDatabase(url), 'read_models')).rejects.toMatchObject({
      code: 'DATABASE_UNSUITABLE',
      message: expect.stringContaining(
        `search_path is '${path}', set ${from}, so the ${object} of the schema 'app' is used in place of PostgreSQL's own.`,
      ),
    });
  }
  for (const [, target] of sources.toReversed()) {
    const refused = await checkServer(openDatabase(url), 'read_models').catch((error: Error) => error.message);
    const [, repair = ''] = /run `(alter .*)`/.exec(String(refused)) ?? [];
    expect(repair).toBe(`alter ${target} set search_path = app, public`);
    await admin.query(repair);
    // It overrides that of the database.
    if (target.startsWith('role')) {
      await checkServer(openDatabase(url), 'read_models');
      await admin.query(`alter ${target} reset search_path`);
    }
  }
  await checkServer(openDatabase(url), 'read_models');
  const connected = `${url}?options=-csearch_path%3Dapp,pg_catalog`;
  await expect(checkServer(openDatabase(connected), 'read_models')).rejects.toMatchObject({
    message: expect.stringMatching(/set by the connection .* and take the setting out of the connection\.$/),
  });
});

test('a sequence that stands below the log is refused at a start and by each append, with the statement that repairs it', async () => {
  const { url } = await newDatabase();
  const db = openDatabase(url);
  await migrate(db);
  const runtime = await startRuntime({
    ...{ config: defineConfig({ projections: [balanceV1], events: [account] }), url, owner: 'test' },
    ...{ development: false, maintain: false, logger: pino({ level: 'silent' }) },
  });
  onTestFinished(() => runtime.stop());
  for (const id of ['a', 'b', 'c']) await open(runtime, id);
  await db.query({ text: `select setval('refold.events_position_seq', 1)` });
  const refused = await checkServer(db, 'read_models').then(
    () => undefined,
    (error: Error) => error,
  );
  expect(refused).toMatchObject({ code: 'DATABASE_UNSUITABLE' });
  // A running process notices it, too, and nothing gets a position below another one.
  await expect(open(runtime, 'd')).rejects.toMatchObject({
    code: 'DATABASE_ERROR',
    message:
      "the sequence of refold.events stands at 1, and the log has events up to 3. Run `select setval('refold.events_position_seq', (select max(position) from refold.events))`.",
  });
  const inserted = `insert into refold.events (family, stream_id, stream_position, type, payload) values ('account', 'x', 1, 'Opened', '{}')`;
  await expect(db.query({ text: inserted })).rejects.toThrow('the log has events up to 3');
  await until(() => runtime.problems().appends === 'the log can not be appended to');
  await db.query({ text: /Run `(select setval.*)`/.exec(refused?.message ?? '')?.[1] ?? '' });
  await checkServer(db, 'read_models');
  await until(() => runtime.problems().appends === undefined);
  expect((await open(runtime, 'd')).position).toBeGreaterThan(3n);
});

test.each([
  'transitions_id_seq',
  'inline_lives',
])('a sequence that gives numbers again is refused with the statement that repairs it: %s', async (sequence) => {
  const { url } = await newDatabase();
  const db = openDatabase(url);
  await migrate(db);
  const runtime = await startRuntime({
    ...{ config: defineConfig({ projections: [inlineBalance] }), url, owner: 'test' },
    ...{ development: false, maintain: true, logger: pino({ level: 'silent' }) },
  });
  onTestFinished(() => runtime.stop());
  await until(async () => (await runtime.status()).every(({ inline }) => inline === 'live'));
  await db.query({ text: `alter sequence refold.${sequence} restart` });
  const refused = await checkServer(db, 'read_models').then(
    () => undefined,
    (error: Error) => error,
  );
  expect(refused).toMatchObject({
    code: 'DATABASE_UNSUITABLE',
    message: expect.stringContaining(`the sequence refold.${sequence} was not copied with its table`),
  });
  // Only what appends need takes a running process out of service.
  if (sequence === 'inline_lives') await until(() => runtime.problems().appends === 'the log can not be appended to');
  else expect(await readAppendProblem(db)).toBeUndefined();
  await db.query({ text: /Run `(select setval.*)`/.exec(refused?.message ?? '')?.[1] ?? '' });
  await checkServer(db, 'read_models');
});

test('a database that quotes all identifiers keeps models with texts in service', async () => {
  const { name, url } = await newDatabase();
  const db = openDatabase(url);
  await migrate(db);
  await admin.query(`alter database ${name} set quote_all_identifiers = on`);
  const runtime = await startRuntime({
    ...{ config: defineConfig({ projections: [balanceV1], events: [account] }), url, owner: 'test' },
    ...{ development: false, maintain: true, logger: pino({ level: 'silent' }) },
  });
  onTestFinished(() => runtime.stop());
  const { position } = await open(runtime, 'a');
  await until(async () => {
    const found = await statusOf(runtime, balanceV1);
    expect(found?.error ?? null).toBeNull();
    return found?.state === 'active' && found.position >= position;
  });
});
