import { afterAll, beforeAll, expect, test } from 'vitest';
import { clockProblem } from '../../../src/runtime/monitoring/examine.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readClockDifference, readServerSettings, settingProblems } from '../../../src/store/server/server-settings.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const sound = {
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousCommit: 'on',
  autovacuum: 'on',
  statementTimeout: '0',
  jit: 'on',
  seesSessions: true,
};

test('each setting that costs safety or speed is named with its way out', () => {
  expect(settingProblems(sound, { sessions: true })).toEqual([]);
  for (const [setting, message] of [
    [{ fsync: 'off' }, /^fsync is off: .* Set it to on/],
    [{ fullPageWrites: 'off' }, /^full_page_writes is off/],
    [{ synchronousCommit: 'off' }, /^synchronous_commit is off: .*`alter role … set synchronous_commit = on`/],
    [{ autovacuum: 'off' }, /^autovacuum is off/],
    [{ seesSessions: false }, /`grant pg_read_all_stats to` the role/],
  ] as const)
    expect(settingProblems({ ...sound, ...setting }, { sessions: true })).toEqual([expect.stringMatching(message)]);
});

test('limits of the role matter only behind a pooler, where sessions can not lift them', () => {
  const limited = { ...sound, statementTimeout: '30s' };
  expect(settingProblems(limited, { sessions: true })).toEqual([]);
  expect(settingProblems(limited, { sessions: false })).toEqual([
    expect.stringContaining('statement_timeout of the role is 30s'),
    expect.stringContaining('jit is on for the role'),
  ]);
});

test('the settings are those of the server, and its clock is near', async () => {
  await database.administer(`alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off`);
  const own = createDatabase({ url: database.url });
  expect(await readServerSettings(own)).toMatchObject({ synchronousCommit: 'off', autovacuum: 'on' });
  const { seconds, exactTo } = await readClockDifference(own);
  expect(Math.abs(seconds)).toBeLessThanOrEqual(exactTo + 1);
  await own.close();
});

test('a clock that differs by more than a second is reported, unless the network may be the cause', () => {
  expect(clockProblem({ seconds: 0.9, exactTo: 0.001 })).toBeUndefined();
  expect(clockProblem({ seconds: -7, exactTo: 6.5 })).toBeUndefined();
  expect(clockProblem({ seconds: -7.04, exactTo: 0.001 })).toMatch(
    /^The clock of this machine is 7\.0 s ahead of that of/,
  );
  expect(clockProblem({ seconds: 7.04, exactTo: 0.001 })).toMatch(
    /^The clock of this machine is 7\.0 s behind that of/,
  );
});
