import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from 'citty';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { migrateCommand } from '../../../src/cli/setup/migrate.ts';
import { defineConfig } from '../../../src/index.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { grantsScript } from '../../../src/store/server/grants.ts';
import { migrate } from '../../../src/store/server/migrate.ts';
import { runtimeSequences, runtimeTables } from '../../../src/store/server/privileges.ts';
import { readReplayedCheckpoint, readReplicaState } from '../../../src/store/server/replica-state.ts';
import { checkServer } from '../../../src/store/server/server-check.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { creditOf, expectRight, open, untilLive } from '../../support/inline-setting.ts';
import { databaseUrl } from '../../support/postgres-for-the-run.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { dropDatabase } from '../../support/test-database.ts';

const { adminUrl, prefix } = inject('postgres');
const name = `${prefix}roles`;
const url = databaseUrl(adminUrl, name);
const roles = { owner: `${prefix}owner`, runtime: `${prefix}runtime`, readOnly: `${prefix}reader` };
const password = decodeURIComponent(new URL(adminUrl).password);
let server: pg.Client;
let admin: pg.Client;

beforeAll(async () => {
  server = new pg.Client({ connectionString: adminUrl });
  await server.connect();
  await server.query(`create database ${name}`);
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await dropDatabase(adminUrl, name);
  for (const role of Object.values(roles)) await server.query(`drop role if exists ${role}`);
  await server.end();
});

test('the three roles of operating.md run everything, and none may do more than its part', async () => {
  await followPage();

  const db = openAs(roles.runtime);
  await checkServer(db, 'read_models');
  const runtime = await startRuntime({
    config: defineConfig({ projections: [inlineBalance, balanceV1], events: [account] }),
    url: db.url,
    owner: 'test',
    development: false,
    maintain: true,
    serves: true,
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => runtime.stop());
  await untilLive(runtime, inlineBalance);
  await open(runtime, 'account-1');
  const { position } = await runtime.log.append(creditOf('account-1'));
  await runtime.positions.waitFor(balanceV1, position, { timeout: 300_000 });
  for (const projection of [inlineBalance, balanceV1]) await expectRight(runtime, projection);

  await expectDenied(db, 'update refold.events set payload = payload');
  await expectDenied(db, 'delete from refold.events');
  await expectDenied(db, 'alter table refold.events disable trigger events_are_immutable');
  await expectDenied(db, 'truncate refold.transitions');
  await expectDenied(db, 'create table refold.mine (id int)');

  const reader = openAs(roles.readOnly);
  // Both tables are newer than the grant.
  expect(await reader.query({ text: 'select from read_models.balance' })).toHaveLength(1);
  expect(await reader.query({ text: `select from read_models.${inlineBalance.tableName}` })).toHaveLength(1);
  expect(await reader.query({ text: 'select distinct name from refold.lag order by name' })).toEqual([
    { name: balanceV1.name },
    { name: inlineBalance.name },
  ]);
  // What a gateway asks of a replica.
  expect((await readReplicaState(reader)).tables.split('\n').toSorted()).toEqual([
    `${balanceV1.id} ${balanceV1.tableName}`,
    `${inlineBalance.id} ${inlineBalance.tableName}`,
  ]);
  const building = db.transaction(async (tx) => {
    await tx.query({
      text: `update refold.projections set state = 'building' where name = $1`,
      values: [balanceV1.name],
    });
    expect((await readReplicaState(tx)).tables).toBe(`${inlineBalance.id} ${inlineBalance.tableName}`);
    throw new Error('enough');
  });
  await expect(building).rejects.toThrow('enough');
  const { version, tableName } = balanceV1;
  expect(await readReplayedCheckpoint(reader, { name: balanceV1.name, version, tableName })).toMatchObject({
    leavesOut: false,
  });
  await expectDenied(reader, 'select payload from refold.events');
  await expectDenied(reader, 'select from refold.append_keys');
  await expectDenied(reader, 'delete from read_models.balance');
  await expectDenied(reader, 'create table read_models.mine (id int)');
  await runtime.stop();
});

test('every table, view and sequence of Refold is in the list of what a running application needs', async () => {
  const listed = [...Object.keys(runtimeTables), ...Object.keys(runtimeSequences)];
  const { rows } = await admin.query<{ name: string }>(`
    select relname as name
    from pg_class
    where relnamespace = 'refold'::regnamespace
      and relkind in ('r', 'v', 'S')
      and relname <> 'migrations_lock' -- only of the owner
      -- A sequence of an identity column is only used by its table, except for those that Refold reads itself.
      and (relname in ('events_position_seq', 'table_snapshots_id_seq')
        or not exists (select from pg_depend where objid = pg_class.oid and deptype = 'i' and relkind = 'S'))`);
  expect(rows.map((row) => row.name).sort()).toEqual(listed.sort());
});

test('roles may have any name, but not the same', async () => {
  const named = { owner: 'Own"er', runtime: "o'run", readOnly: '100 % me' };
  const script = grantsScript({ ...named, readSchema: 'read_models', textSearch: false });
  onTestFinished(async () => {
    for (const role of Object.values(named).map((role) => pg.escapeIdentifier(role))) {
      await admin.query(`drop owned by ${role} cascade`);
      await admin.query(`drop role ${role}`);
    }
  });
  await admin.query(script);
  await admin.query(script);
  await expect(printedGrants({ ...named, runtime: named.owner })).rejects.toThrow('are three roles');
});

/** Does what the commands of the page do. */
async function followPage(): Promise<void> {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/operating.md'), 'utf8');
  const commands = /```sh\n(refold migrate --print-grants .*?)```/s.exec(page)?.[1]?.trim().split('\n') ?? [];
  expect(commands).toHaveLength(5);
  let script = '';
  for (const command of commands) {
    if (command.startsWith('refold migrate --print-grants')) script = await printedGrants(roles);
    else if (command.startsWith('psql "$ADMIN_URL" --file')) await admin.query(script);
    else if (command.includes('\\password')) await setPasswords();
    else if (command.endsWith('refold migrate')) expect((await migrate(openAs(roles.owner))).applied).not.toEqual([]);
    else expect.fail(`no such step: ${command}`);
  }
}

async function printedGrants({ owner, runtime, readOnly }: typeof roles): Promise<string> {
  const config = join(import.meta.dirname, '../../../examples/shopping-cart/app.ts');
  const names = [`--owner=${owner}`, `--runtime=${runtime}`, `--read-only=${readOnly}`];
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
  const refused = vi.spyOn(console, 'error').mockImplementation(() => {});
  const exited = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error(String(refused.mock.calls[0]?.[0]));
  });
  try {
    await runCommand(migrateCommand, { rawArgs: ['--print-grants', ...names, '--config', config] });
    return String(printed.mock.calls[0]?.[0]);
  } finally {
    for (const spy of [printed, refused, exited]) spy.mockRestore();
  }
}

async function setPasswords(): Promise<void> {
  if (password === '') return;
  for (const role of Object.values(roles))
    await admin.query(`alter role ${role} password ${pg.escapeLiteral(password)}`);
}

function openAs(role: string): Database {
  const db = createDatabase({ url: Object.assign(new URL(url), { username: role }).href });
  onTestFinished(() => db.close());
  return db;
}

async function expectDenied(db: Database, text: string): Promise<void> {
  await expect(db.query({ text }), text).rejects.toMatchObject({
    message: expect.stringMatching(/permission denied|must be owner/),
  });
}
