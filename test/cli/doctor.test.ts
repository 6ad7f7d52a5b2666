import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig } from '../../src/index.ts';
import type { Finding } from '../../src/runtime/monitoring/examine.ts';
import { readStalls } from '../../src/store/log/horizon.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { runCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

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

const balances = 'export default defineConfig({ projections: [balanceV1] });';

async function examined(text = balances, url = database.url) {
  const config = await applicationFile(text);
  const { code, stdout } = await runCliHere(['doctor', '--json', '--config', config], { DATABASE_URL: url });
  const { ok, findings }: { ok: boolean; findings: readonly Finding[] } = JSON.parse(stdout);
  return { code, ok, findings, of: (subject: Finding['subject']) => findings.filter((one) => one.subject === subject) };
}

test('a sound database has no problem, and every subject is reported', async () => {
  const { code, ok, findings } = await examined();
  expect({ code, ok }).toEqual({ code: 0, ok: true });
  expect([...new Set(findings.map(({ subject }) => subject))]).toEqual([
    'options',
    'server',
    'sessions',
    'privileges',
    'migrations',
    'log',
    'settings',
    'clock',
    'connections',
    'horizon',
    'streams',
    'views',
    'declarations',
    'processes',
  ]);
  const printed = await runCli(['doctor', '--config', await applicationFile(balances)], {
    env: { DATABASE_URL: database.url },
  });
  expect(printed).toMatchObject({ code: 0, stderr: '' });
  expect(printed.stdout).toMatch(
    /^ +subject +finding\nok +options +The environment sets DATABASE_URL\.\nok +server +The server takes writes.*\nok +sessions +A lock of one connection is seen by another.*\n/,
  );
  expect(printed.stdout).toMatch(/No problem found\.\n$/);
});

test('what a start would refuse is a problem with its way out, and exits with 1', async () => {
  const broken = await createTestDatabase();
  await broken.administer('alter table refold.events disable trigger tag_writer');
  const { code, of } = await examined(balances, broken.url);
  expect(code).toBe(1);
  expect(of('log')).toEqual([
    {
      subject: 'log',
      kind: 'problem',
      message: expect.stringContaining('alter table refold.events enable trigger tag_writer'),
    },
  ]);
  await broken.administer("delete from refold.migrations where name like '0011%'");
  const older = await examined(balances, broken.url);
  expect(older.of('migrations')).toMatchObject([
    { kind: 'problem', message: expect.stringContaining('Run `refold migrate`') },
  ]);
  expect(older.of('processes')).toEqual([]);
  await broken.drop();
});

test('a server that can not be reached is one problem', async () => {
  const { code, findings } = await examined(balances, 'postgres://refold@127.0.0.1:1/none');
  expect(code).toBe(1);
  expect(findings).toMatchObject([{ subject: 'options' }, { subject: 'server', kind: 'problem' }]);
});

test('declarations that differ, versions that nobody maintains and sessions that hold the log are reported', async () => {
  const refold = await createRefold(defineConfig({ projections: [balanceV1], database: { url: database.url } }), {
    role: 'worker',
  });
  await refold.stop();
  const session = new pg.Client({ connectionString: database.url, application_name: 'nightly import' });
  await session.connect();
  await session.query('begin');
  await session.query(
    `insert into refold.events (family, stream_id, stream_position, type, payload)
     values ('${account.name}', 'held', 1, 'Opened', '{"owner": "x"}')`,
  );
  await until(async () => ((await readStalls(db))[0]?.seconds ?? 0) > 5);
  const { code, of } = await examined('export default defineConfig({ events: [account] });');
  expect(code).toBe(1);
  expect(of('horizon')).toMatchObject([{ kind: 'problem', message: expect.stringContaining("of 'nightly import' (") }]);
  expect(of('declarations').length).toBeGreaterThan(0);
  expect(of('processes')).toMatchObject([
    { kind: 'note', message: expect.stringContaining('No process maintains balance@1.') },
  ]);
  const config = await applicationFile(balances);
  const status = await runCliHere(['status', '--config', config], { DATABASE_URL: database.url });
  expect(status.stdout).toMatch(
    /\nThe log can't be read past position 0: session \d+ of 'nightly import' \(.*\) has been appending for \d+ s, idle in transaction: insert into /,
  );
  await session.query('rollback');
  await session.end();
});
