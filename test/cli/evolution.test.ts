import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createRefold, defineConfig } from '../../src/index.ts';
import { runCli } from '../support/cli.ts';
import { balanceV1 } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

test("'changes' and 'usage' show what a version changes for clients, and which clients are affected", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const config = defineConfig({
    projections: [balanceV1],
    gateway: { port: 0, positionTimeout: 300_000 },
    database: { url: database.url },
  });
  const refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  await until(async () => (await refold.status()).every(({ state }) => state === 'active'));
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'graphql-client-name': 'web' },
    body: JSON.stringify({ query: '{ balance(accountId: "a") { owner } }' }),
  });
  expect(response.status).toBe(200);
  await refold.stop();

  const file = await applicationFile(`
    const v2 = defineProjection({
      name: 'balance', version: 2, events: account,
      table: { ...balanceV1.columns, owner: t.text().index().nullable() },
      key: (event) => event.streamId,
      evolve: { Opened: (row) => row },
    });
    export default defineConfig({ projections: [balanceV1, v2] });`);
  const run = (...cliArguments: string[]) =>
    runCli([...cliArguments, '--config', file], { env: { DATABASE_URL: database.url } });
  const changes = await run('changes');
  expect(changes.stdout).toMatch(
    /^balance@2 in place of balance@1\n {2}breaking {3}Balance\.owner changed type from String! to String\. \(\+ \d+ derived\)\n {13}used by web \(1 operation, last \S+\)\n/,
  );
  expect(changes.stdout).toMatch(
    /\n {2}1 breaking, 0 dangerous, 0 safe; --all shows derived ones\n {2}field usage has been recorded for \d+ min\n$/,
  );
  expect(changes.code).toBe(1);
  const all = await run('changes', '--all');
  expect(all.stdout).toMatch(
    /from String! to String\.\n(?: {4}.*\n)* {4}breaking {3}BalanceFilter\.owner changed type/,
  );
  expect((await run('usage', 'Balance')).stdout).toMatch(
    /^path +client +version +pins +operations +last\nBalance\.owner +web +- +- +1 {2}\d{4}-\S+ \d\d:\d\d\nRecorded for \d+ min\.\n$/,
  );
});
