import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { defineConfig, defineProjection, defineReactor, t } from '../../src/index.ts';
import { startRuntime } from '../../src/runtime/runtime.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { type CliResult, runCli } from '../support/cli.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

/** A projection and a reactor that fail on every credit, here and in the file. */
const credits = defineProjection({
  name: 'credits',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey() },
  key: (event) => event.streamId,
  evolve: { Opened: () => ({}), Credited: () => fail('bad luck') },
  onError: 'dead-letter',
});
const watch = defineReactor({
  name: 'watch',
  events: account,
  from: 'beginning',
  handle: { Credited: async () => fail('no mail') },
  onError: { policy: 'dead-letter', retries: [] },
});
const file = `
  const fail = (message) => { throw new Error(message); };
  const credits = defineProjection({
    name: 'credits', version: 1, events: account, table: { accountId: t.text().primaryKey() }, key: (event) => event.streamId,
    evolve: { Opened: () => ({}), Credited: () => fail('bad luck') }, onError: 'dead-letter',
  });
  const watch = defineReactor({
    name: 'watch', events: account, from: 'beginning', handle: { Credited: async () => fail('no mail') },
    onError: { policy: 'dead-letter', retries: [] },
  });
  export default defineConfig({ projections: [credits], reactors: [watch] });`;

function fail(message: string): never {
  throw new Error(message);
}

test('dead letters of all versions are listed; a wrong name and a failed retry end with an error', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const runtime = await startRuntime({
    config: defineConfig({ projections: [credits], reactors: [watch] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: true,
    logger: pino({ level: 'silent' }),
  });
  await runtime.log.append({
    family: account,
    streamId: 'a',
    events: [
      { type: 'Opened', payload: { owner: 'Ada' } },
      { type: 'Credited', payload: { amount: '1' } },
      { type: 'Credited', payload: { amount: '2' } },
    ],
  });
  await until(async () => (await readRegistry(runtime.db)).every(({ checkpoint }) => checkpoint === 3n));
  await until(async () => (await readReactors(runtime.db)).every(({ checkpoint }) => checkpoint === 3n));
  await runtime.stop();

  const config = await applicationFile(file);
  const run = (...cliArguments: string[]): Promise<CliResult> =>
    runCli(['dead-letters', ...cliArguments, '--config', config], { env: { DATABASE_URL: database.url } });
  const refused = (message: string) => ({ code: 1, stdout: '', stderr: `refold: ${message}\n` });

  expect((await run('list')).stdout).toMatch(
    /^of +position +event +stream +row or key +attempts +error\ncredits@1 +2 +Credited +a +\["a"\] +1 +credits@1: .*bad luck\ncredits@1 +3 .*\nwatch +2 +Credited +a +account\/a +1 +watch: .*no mail\nwatch +3 .*\n$/,
  );
  expect(await run('retry', 'credits@1')).toMatchObject({
    code: 1,
    stdout:
      "credits@1: nothing could be folded, 2 left. They still fail with the code of the process that folds them. 'refold dead-letters list credits@1' shows why.\n",
  });
  expect(await run('list', 'credits')).toMatchObject(
    refused("There is no reactor 'credits'. It is a projection; name a version of it: 'credits@1'."),
  );
  expect(await run('retry', 'wach')).toMatchObject(
    refused("There is no reactor 'wach'. Did you mean 'watch'? A version is written like cart_summary@2."),
  );
  expect(await run('list', 'watch', '--discarded')).toMatchObject(
    refused(
      "What a reactor discards is not kept: --discarded is for versions, such as cart_summary@2. 'refold reactor history watch' shows who discarded letters, and when.",
    ),
  );
}, 300_000); // five processes, which start slowly on a busy machine
