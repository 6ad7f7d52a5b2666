import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { announceProcess } from '../../../src/store/ownership/processes.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { settingsOfStatements } from '../../../src/store/postgres/session-settings.ts';
import { migrate, pendingMigrations } from '../../../src/store/server/migrate.ts';
import { readMigrations } from '../../../src/store/server/migration-files.ts';
import { checkServer, logProblem } from '../../../src/store/server/server-check.ts';
import { serverProblem } from '../../../src/store/server/server-facts.ts';
import { databaseUrl } from '../../support/postgres-for-the-run.ts';
import { dropDatabase } from '../../support/test-database.ts';

const { adminUrl, prefix } = inject('postgres');
const name = `${prefix}migrate`;
const url = databaseUrl(adminUrl, name);
let admin: pg.Client;
let db: Database;

beforeAll(async () => {
  admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
});
afterAll(async () => {
  await db.close();
  await dropDatabase(adminUrl, name);
  await admin.end();
});
beforeEach(async () => {
  await db?.close();
  await dropDatabase(adminUrl, name);
  await admin.query(`create database ${name}`);
  db = createDatabase({ url });
});

describe('migrate', () => {
  test('brings an empty database up to date once, for any number of concurrent callers', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, () => migrate(url)));
    const applied = results.flatMap((result) => result.applied);
    expect(applied[0]).toBe('0001_event_log');
    expect(new Set(applied).size).toBe(applied.length);
    expect(await pendingMigrations(db)).toEqual({ pending: [], unknown: [], problem: undefined });
    await checkServer(db, 'read_models');
    expect(await migrate(db)).toEqual({ applied: [] });
  });

  test('leaves a database unchanged that a newer Refold has migrated', async () => {
    await migrate(db);
    await db.query({
      text: `insert into refold.migrations values ('9999_from_the_future', '2999-01-01T00:00:00.000Z')`,
    });
    const refusal = {
      code: 'DATABASE_NOT_MIGRATED',
      message: expect.stringContaining('newer Refold (9999_from_the_future)'),
    };
    await expect(migrate(db)).rejects.toMatchObject(refusal);
    await expect(checkServer(db, 'read_models')).rejects.toMatchObject(refusal);
  });

  test('leaves a database unchanged that was created before the first release', async () => {
    await migrate(db);
    await db.query({
      text: `update refold.migrations set name = '0003_activation' where name = '0003_registry'`,
    });
    const refusal = {
      code: 'DATABASE_NOT_MIGRATED',
      message:
        "The database was created by an older, unreleased version of Refold (0003_activation), which can't be migrated. " +
        'Use an empty database, and run `refold migrate`. For an embedded server, delete its folder `.refold`.',
    };
    await expect(migrate(db)).rejects.toMatchObject(refusal);
    await expect(checkServer(db, 'read_models')).rejects.toMatchObject(refusal);
  });
});

describe('a migration that older processes can’t run beside', () => {
  /** Creates a folder with the current migrations and one more. */
  function folderWith(text: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'refold-migrations-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const migration of readMigrations()) writeFileSync(join(folder, `${migration.name}.sql`), migration.text);
    writeFileSync(join(folder, '9000_next.sql'), text);
    return folder;
  }

  test('waits until no process runs, unless the operator overrides it', async () => {
    const folder = folderWith('-- Drops what older code writes.\n--\n-- breaking\ncomment on schema refold is null;\n');
    await migrate(db);
    const announced = {
      declares: [],
      owns: [],
      keeps: [],
      role: 'gateway',
      versions: [],
      payloadVersions: {},
      reactorVersions: {},
    } as const;
    await announceProcess(db, { ...announced, id: randomUUID(), name: 'shop:7' });
    const ended = randomUUID();
    await announceProcess(db, { ...announced, id: ended, name: 'shop:6' });
    await db.query({
      text: `update refold.processes set heartbeat_at = heartbeat_at - interval '1 minute' where id = $1`,
      values: [ended],
    });
    await expect(migrate(db, { folder })).rejects.toMatchObject({
      code: 'DATABASE_NOT_MIGRATED',
      message:
        "Processes of older code can't run after the migrations 9000_next, and these run: shop:7 (gateway). Nothing was changed. " +
        'Stop them and run `refold migrate` again. A killed process counts as running for 15 seconds. ' +
        'To migrate now, run `refold migrate --while-processes-run`: the processes can fail until they are replaced.',
      fields: { pending: ['9000_next'], processes: ['shop:7 (gateway)'] },
    });
    expect(await pendingMigrations(db)).toMatchObject({ pending: [], unknown: [] });
    expect(await migrate(db, { folder, whileProcessesRun: true })).toEqual({ applied: ['9000_next'] });
  });

  test('is applied to an empty database, and after the last process has ended', async () => {
    const folder = folderWith('-- breaking\ncomment on schema refold is null;\n');
    expect((await migrate(db, { folder })).applied.at(-1)).toBe('9000_next');
    expect(await migrate(db, { folder })).toEqual({ applied: [] });
  });

  test('any other is applied while processes run', async () => {
    const folder = folderWith('-- Older processes: can run beside it\ncomment on schema refold is null;\n');
    await migrate(db);
    const announced = {
      declares: [],
      owns: [],
      keeps: [],
      role: 'all',
      versions: [],
      payloadVersions: {},
      reactorVersions: {},
    } as const;
    await announceProcess(db, { ...announced, id: randomUUID(), name: 'shop:7' });
    expect(await migrate(db, { folder })).toEqual({ applied: ['9000_next'] });
  });
});

test('each migration says what it needs, and whether older processes can run beside it', () => {
  const migrations = readMigrations();
  const names = migrations.map(({ name }) => name);
  for (const { name, text, breaking } of migrations) {
    const needs = /^-- Needs: (.+)$/m.exec(text)?.[1];
    expect(needs, name).toBeDefined();
    const earlier = names.slice(0, names.indexOf(name));
    if (needs !== 'nothing') expect(earlier, name).toEqual(expect.arrayContaining(needs?.split(', ') ?? []));
    expect(text.includes('\n-- Older processes: can run beside it\n'), name).toBe(!breaking);
  }
});

describe('a start is refused', () => {
  test('on a database without tables, and the error names the command to run', async () => {
    await expect(checkServer(db, 'read_models')).rejects.toMatchObject({
      code: 'DATABASE_NOT_MIGRATED',
      message: expect.stringMatching(/0001_event_log.*Run `refold migrate`/),
    });
  });

  test.for<[what: string, change: string, message: RegExp]>([
    [
      'whose sequence hands out positions from a cache',
      'alter sequence refold.events_position_seq cache 20',
      /cache of 20; expected 1/,
    ],
  ])('on a database %s', async ([, change, message]) => {
    await migrate(db);
    await db.query({ text: change });
    await expect(checkServer(db, 'read_models')).rejects.toMatchObject({
      code: 'DATABASE_UNSUITABLE',
      message: expect.stringMatching(message),
    });
  });

  test('on a database of which a trigger is disabled that something relies on', async () => {
    await migrate(db);
    const triggers = await db.query<{ name: string; of: string }>({
      text: `
        select tgname as name, tgrelid::regclass::text as of
        from pg_trigger
        where not tgisinternal and tgname <> 'events_are_immutable' and tgrelid::regclass::text like 'refold.%'`,
    });
    expect(triggers.map(({ name }) => name)).toContain('check_insert');
    for (const { name, of } of triggers) {
      await db.query({ text: `alter table ${of} disable trigger ${name}` });
      await expect(checkServer(db, 'read_models'), name).rejects.toMatchObject({
        code: 'DATABASE_UNSUITABLE',
        message: expect.stringContaining(`Run \`alter table ${of} enable trigger ${name}\``),
      });
      await db.query({ text: `alter table ${of} enable trigger ${name}` });
    }
    await checkServer(db, 'read_models');
  });

  test('on a server that is too old, is a standby, or hides its locks', () => {
    const facts = {
      version: '14.0',
      versionNumber: 140_000,
      isStandby: false,
      encoding: 'UTF8',
      isReadOnly: false,
      settings: settingsOfStatements,
      skipsTriggers: false,
    };
    expect(serverProblem(facts)).toBeUndefined();
    expect(serverProblem({ ...facts, version: '13.22', versionNumber: 130_022 })).toBe(
      'PostgreSQL 13.22 found; Refold needs 14 or newer.',
    );
    expect(serverProblem({ ...facts, isStandby: true })).toContain('standby');
    const atRest = { drawn: 5n, lastEvent: 5n, behind: null, used: null };
    expect(logProblem({ sequenceCache: 1, disabled: null, seesLocks: false, ...atRest })).toContain('pg_locks');
    expect(logProblem({ sequenceCache: 1, disabled: null, seesLocks: true, ...atRest })).toBeUndefined();
    const moved = { ...atRest, sequenceCache: 1, disabled: null, seesLocks: true, drawn: 2n ** 47n };
    expect(logProblem(moved)).toContain('Positions end at 2^47');
  });
});
