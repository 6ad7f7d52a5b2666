import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { reactorsToText } from '../../src/cli/reactors/reactor-text.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readReactors } from '../../src/store/reactors/reactors.ts';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile, userFolder } from './application-file.ts';

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

const environment = () => ({ env: { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'fatal' } });

async function run(config: string, ...cliArguments: string[]): Promise<CliResult> {
  return runCliHere([...cliArguments, '--config', config], environment().env);
}

/** In a process of its own. */
async function runAlone(config: string, ...cliArguments: string[]): Promise<CliResult> {
  return runCli([...cliArguments, '--config', config], environment());
}

test('an operator sees reactors, pauses and rewinds them, and retries their dead letters from the command line', async () => {
  const mended = join(await userFolder(), 'mended');
  const application = (version: number) =>
    applicationFile(`
    import { existsSync } from 'node:fs';
    const watch = defineReactor({
      name: 'watch',
      version: ${version},
      events: account,
      handle: {
        Credited() { if (!existsSync('${mended}')) throw new Error('bad luck'); },
        Opened: (event, { wait }) => wait.until('2999-12-31'),
      },
      onError: { policy: 'dead-letter', retries: [] },
    });
    export default defineConfig({ reactors: [watch] });`);
  const config = await application(1);
  const worker = startCli(['start', '--role', 'worker', '--config', config], environment());
  await until(async () => (await readReactors(db))[0]?.status === 'running');
  const log = createEventLog(db, [account]);
  for (const amount of ['1', '2'])
    await log.append({ family: account, streamId: 'a', events: [{ type: 'Credited', payload: { amount } }] });
  await until(async () => (await readReactors(db))[0]?.deadLetters === 2);
  await until(async () => (await readReactors(db))[0]?.checkpoint === 2n);

  const status = await run(config, 'status');
  expect(status.stdout).toMatch(
    /reactor +state +position +lag +handled +left out +waiting +owner\nwatch +running +2 +0 +0 +0 +0 +\S+/,
  );
  expect(status.stdout).toContain("watch has 2 dead letters: 'refold dead-letters list watch'\n");
  expect(JSON.parse((await run(config, 'status', '--json')).stdout)).toMatchObject({ reactors: [{ name: 'watch' }] });
  const letters = await run(config, 'dead-letters', 'list', 'watch');
  expect(letters.stdout).toMatch(/ 1 +Credited +a +account\/a +1 +watch: handling 'Credited' .* failed: bad luck\n/);
  expect(letters.stdout).toMatch(/ 2 +Credited +a +account\/a +0 +\(waits behind an earlier one\)\n/);
  expect(await run(config, 'dead-letters', 'retry', 'watch')).toMatchObject({
    code: 1,
    stdout: "watch: nothing could be handled, 2 left. 'refold dead-letters list watch' shows why.\n",
  });
  expect(await run(await application(2), 'check')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('note     watch@1 has 2 events under way, and this program does not declare it'),
  });
  await writeFile(mended, '');
  expect(await runAlone(config, 'dead-letters', 'retry', 'watch', '--key', 'account/a')).toMatchObject({
    stdout: 'watch: 2 handled, 0 left.\n',
  });

  expect(await run(config, 'reactor', 'pause', 'watch')).toMatchObject({
    stdout: "watch is paused.\n'refold reactor resume watch' resumes it.\n",
  });
  expect(await runAlone(config, 'reactor', 'rewind', 'watch', '1', '--reason', 'lost mails')).toMatchObject({
    stdout: expect.stringMatching(
      /^Warning: Side effects .*\nWarning: Its dead letters .*\nwatch continues after position 1: later events are handled again\.\n$/,
    ),
  });
  expect((await run(config, 'reactor', 'list')).stdout).toMatch(/watch +paused +1 +1/);
  expect(await run(config, 'reactor', 'resume', 'watch')).toMatchObject({ stdout: 'watch is resumed.\n' });
  await until(async () => (await readReactors(db))[0]?.checkpoint === 2n);
  await log.append({ family: account, streamId: 'b', events: [{ type: 'Opened', payload: { owner: 'Bo' } }] });
  await until(async () => (await readReactors(db))[0]?.waiting === 1);
  expect((await run(config, 'reactor', 'show', 'watch')).stdout).toMatch(
    /the next wait is over at 2999-12-31T.*\n\nposition +event +stream +step +waits for +until +since\n +3 +Opened +b +wait:until +its time +2999-12-31T/,
  );
  expect(await run(config, 'reactor', 'cancel', 'watch', '3')).toMatchObject({
    stdout: expect.stringMatching(/^(Warning: .*\n)*watch does not continue with the event at position 3\.\n$/),
  });
  expect(await run(config, 'reactor', 'withdraw', 'watch', '1')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('watch has no version below 1.'),
  });
  expect((await run(config, 'reactor', 'history', 'watch')).stdout).toMatch(/rewound +2 → 1 +\S+ +lost mails\n/);
  expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
  expect(await run(config, 'reactor', 'forget', 'watch')).toMatchObject({
    stdout: expect.stringMatching(/^(Warning: .*\n)*watch is forgotten\.\n$/),
  });
}, 900_000); // a dozen processes, one after another, on a machine that may be busy

test('the versions of a reactor are shown with what is left of them', () => {
  const exactly = (value: number) => ({ value, isExact: true });
  const versions = [
    { number: 1, after: '0', upTo: '900', underWay: exactly(0), isNeeded: false },
    { number: 2, after: '900', upTo: '1000', underWay: exactly(3), isNeeded: true },
    { number: 3, after: '1000', upTo: null, underWay: exactly(0), isNeeded: true },
  ];
  const counts = { lag: '0', handled: '7', skipped: '0', deadLetters: exactly(0), waiting: exactly(0), nextDue: null };
  const watch = { name: 'watch', state: 'running', owner: 'host:1', position: '1042', ...counts } as const;
  const text = reactorsToText([{ ...watch, versions, error: null }]);
  expect(text.split('\n').slice(2)).toEqual([
    'watch@1 handles the events up to position 900: none under way, so its declaration is not needed',
    'watch@2 handles the events up to position 1,000: 3 under way',
    'watch@3 handles the events after position 1,000: 0 under way',
  ]);
  expect(reactorsToText([{ ...watch, versions: versions.slice(2), error: null }])).not.toContain('watch@');
});
