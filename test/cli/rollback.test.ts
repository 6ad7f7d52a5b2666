import { afterEach, beforeEach, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

let database: TestDatabase;
let db: Database;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

const environment = () => ({ env: { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn' } });
const application = (projections: string) =>
  applicationFile(`export default defineConfig({ projections: [${projections}] });`);

async function run(config: string, ...cliArguments: string[]): Promise<CliResult> {
  return runCliHere([...cliArguments, '--config', config], environment().env);
}

async function states(): Promise<string[]> {
  return (await readRegistry(db)).map(({ version, state }) => `${version} ${state}`);
}

test('a rollback takes the highest version out of service, and only the version that was named', async () => {
  const config = await application('balanceV1, balanceV2');
  const worker = startCli(['start', '--role', 'worker', '--config', config], environment());
  await worker.prints(/maintains/);
  await until(async () => (await readRegistry(db)).every(({ status }) => status === 'running'));
  expect(await run(config, 'rollback', 'balance@1')).toMatchObject({
    code: 1,
    stderr: 'refold: balance@2 is the highest active version, and the one to roll back, not @1.\n',
  });
  expect(
    await runCli(['rollback', 'balance', '--reason', 'odd figures', '--config', config], environment()),
  ).toMatchObject({
    code: 0,
    stdout: 'balance@1 answers again. balance@2 stays current and ready.\n',
  });
  expect(await states()).toEqual(['1 active', '2 ready']);
  expect(await run(config, 'rollback', 'balance')).toMatchObject({
    code: 1,
    stderr: "refold: Can't roll back: only balance@1 is active, so nothing could answer in its place.\n",
  });
  const status = await run(config, 'status');
  expect(status.stdout).toContain('ready (held)');
  expect(status.stdout).toMatch(/^balance@2 is held: rolled back by \S+: odd figures$/m);
  expect(await run(config, 'activate', 'balance@2')).toMatchObject({ code: 0, stdout: 'balance@2 is active.\n' });
  expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('a rollback to a version that no process maintains is refused, or prints a warning', async () => {
  const both = await application('balanceV1, balanceV2');
  const started = startCli(['start', '--role', 'worker', '--config', both], environment());
  await started.prints(/maintains/);
  await started.end('SIGTERM');

  const second = await application('balanceV2');
  expect(await run(second, 'rollback', 'balance')).toMatchObject({
    code: 1,
    stderr:
      'refold: balance@1 would answer, but this application does not declare it. Declare it again, deploy that, and let it catch up.\n',
  });
  expect(await states()).toEqual(['1 active', '2 active']);
  const rolledBack = await run(both, 'rollback', 'balance');
  expect(rolledBack.code).toBe(0);
  expect(rolledBack.stdout).toContain('Warning: No process maintains balance@1: it is at position 0.\n');
  expect(await states()).toEqual(['1 active', '2 ready']);
});
