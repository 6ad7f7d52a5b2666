import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type AdminUnderTest, startAdmin, tokens } from '../admin/admin-under-test.ts';
import { fillOperated, operated, operatedState } from '../admin/operated-application.ts';
import type { CliResult } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';
import { versionCommands } from './remote-commands.ts';

/** All versions are in another server than the log. */
let server: PostgresCluster;
let admin: AdminUnderTest;
let store: Database;

beforeAll(async () => {
  server = await startOwnServer();
  const readStores = { analytics: { url: server.url } };
  admin = await startAdmin({ ...operated, readStores, store: 'analytics' }, fillOperated);
  store = createDatabase({ url: server.url });
});
afterAll(async () => {
  await store.close();
  await admin.close();
  await server.stop();
});

function remote(line: string): Promise<CliResult> {
  return runCliHere([...line.split(' '), '--remote', admin.refold.url ?? ''], { REFOLD_REMOTE_TOKEN: tokens.all });
}

/** Without the admin API. */
async function withDatabases(line: string): Promise<CliResult> {
  const config = await applicationFile('export default defineConfig({ projections: [balanceV1] });');
  return runCliHere([...line.split(' '), '--config', config], {
    DATABASE_URL: admin.database.url,
    REFOLD_READ_STORES: JSON.stringify({ analytics: { url: server.url } }),
    REFOLD_STORE: 'analytics',
  });
}

test('the history says in which store a version was', async () => {
  const { stdout } = await withDatabases('history openings@2');
  expect(stdout).toMatch(/^at +of +store +step +actor +reason\n/);
  expect(stdout).toMatch(/openings@2 +analytics +building → ready/);
  expect(JSON.parse((await withDatabases('history openings@2 --json')).stdout)[0]).toMatchObject({
    store: 'analytics',
  });
});

test('canaries of another store are listed', async () => {
  expect((await remote('canary openings@2 --percent 10 --reason agreed')).code).toBe(0);
  expect((await withDatabases('canary')).stdout).toMatch(/^openings@2 \(ready\) answers /);
  expect((await remote('canary openings@2 --stop --reason agreed')).code).toBe(0);
});

test('versions of another store are shown with it', async () => {
  const { stdout } = await remote('status');
  expect(stdout).toMatch(/^balance@2 +active +unowned +6 +0/m);
  expect(stdout).toContain("balance@2 is in the read store 'analytics'");
  expect(JSON.parse((await remote('status --json')).stdout)).toMatchObject({
    versions: { length: 5 },
    storesAway: [],
    stores: [
      { name: 'default', isAway: false, versionCount: 0 },
      { name: 'analytics', isAway: false, versionCount: 5 },
    ],
  });
  expect((await remote('history openings@2')).stdout).toMatch(/openings@2 +analytics +building → ready/);
  expect(await remote('dead-letters list')).toMatchObject({
    stdout: expect.stringMatching(/^strict@1 +2 +Debited +a +\["a"\] +1 .*too large/m),
    stderr: '',
  });
  expect((await remote('verify balance@2')).stdout).toBe('balance@2 equals the log at position 6: 2 rows compared.\n');
  expect((await remote('diff balance@1 balance@2')).code).toBe(0);
});

for (const [line, , before] of versionCommands)
  test(`'${line}' is done in the store of the version, and recorded there`, async () => {
    if (before) await store.query({ text: before });
    const unchanged = await operatedState(store);
    expect(await remote(`${line} --reason agreed`)).toMatchObject({ code: 0, stderr: '' });
    expect(await operatedState(store)).not.toEqual(unchanged);
    const last = 'select actor, reason from refold.transitions order by id desc limit 1';
    const [recorded] = await store.query({ text: last });
    expect(recorded).toEqual({ actor: 'ada', reason: expect.stringContaining('agreed') });
  });

test('a store that is away is named by each list that lacks its versions', async () => {
  await server.kill();
  const status = await until(async () => {
    const { stdout } = await remote('status');
    return stdout.includes('does not respond') ? stdout : undefined;
  });
  expect(status).toMatch(/^The read store 'analytics' does not respond: its versions are not listed/);
  expect(JSON.parse((await remote('status --json')).stdout).storesAway).toEqual(['analytics']);
  const incomplete = "refold: The read store 'analytics' does not respond: what it has is not listed.\n";
  for (const line of ['history', 'dead-letters list', 'snapshot list', 'canary', 'shadow'])
    expect((await remote(line)).stderr, line).toBe(incomplete);
  // With the databases, the same.
  for (const line of ['history', 'dead-letters list', 'dead-letters list --discarded', 'snapshot list', 'canary'])
    expect(await withDatabases(line), line).toMatchObject({ code: 0, stderr: incomplete });
  for (const line of ['pause balance@2 --reason agreed', 'snapshot list balance@2', 'verify balance@2'])
    expect(await remote(line), line).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("The read store 'analytics'"),
    });
  await server.restart();
  await until(async () => (await remote('status')).stdout.includes('balance@2'));
});
