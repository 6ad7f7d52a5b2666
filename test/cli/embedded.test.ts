import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { expect, test } from 'vitest';
import { embeddedDataDir } from '../../src/refold.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { seeded } from '../support/account-traffic.ts';
import { startCli } from '../support/cli.ts';
import { effort } from '../support/effort.ts';
import { until } from '../support/until.ts';
import { userFolder } from './application-file.ts';

const application = `
import { defineConfig } from '${resolve('src/index.ts')}';
import { balanceV1, credit, openAccount } from '${resolve('test/support/sample-domain.ts')}';
export default defineConfig({ projections: [balanceV1], commands: [openAccount, credit], gateway: { positionTimeout: 300_000 } });`;

const importing = `
import { defineConfig, defineImport } from '${resolve('src/index.ts')}';
import { account, balanceV1 } from '${resolve('test/support/sample-domain.ts')}';
const openings = defineImport({
  name: 'openings',
  async *toAppends(lines) {
    for await (const { text } of lines)
      yield { family: account, streamId: text, events: [{ type: 'Opened', payload: { owner: 'Ada' } }], idempotencyKey: text };
  },
});
export default defineConfig({ projections: [balanceV1], imports: [openings], gateway: { drainSeconds: 0 } });`;

const environment = { PORT: '0', LOG_LEVEL: 'warn' };

const portIn = (dataDir: string) => readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')[3];

async function ask(url: string, query: string): Promise<unknown> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

test('without a database URL an application has its own server: its data stays between runs, and commands share it', async () => {
  const cwd = await userFolder({ 'refold.config.ts': application });
  const isRunning = () => existsSync(join(cwd, embeddedDataDir, 'postmaster.pid'));
  const refold = (...cliArguments: string[]) => startCli(cliArguments, { cwd, env: environment });

  const first = refold('dev');
  const url = await first.url();
  const opened = 'mutation { openAccount(input: { accountId: "a", owner: "Ada" }) { balance { owner } } }';
  expect(await ask(url, opened)).toEqual({ data: { openAccount: { balance: { owner: 'Ada' } } } });
  // Output may be seen by others, so it does not show the server's password.
  const password = readFileSync(join(cwd, embeddedDataDir, 'refold.password'), 'utf8');
  expect(first.printed.stdout).not.toContain(password);

  const beside = await refold('status', '--json').ended;
  expect(beside).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(beside.stdout).versions).toMatchObject([{ id: 'balance@1', state: 'ACTIVE', health: 'CURRENT' }]);
  // A second process shares the server, whichever of them ends first.
  const second = refold('start', '--embedded', '--role', 'gateway');
  const secondUrl = await second.url();
  const query = '{ balance(accountId: "a") { owner } }';
  expect(await ask(secondUrl, query)).toEqual({ data: { balance: { owner: 'Ada' } } });
  expect((await refold('url').ended).stdout).toBe(
    `postgresql://postgres:${password}@127.0.0.1:${portIn(join(cwd, embeddedDataDir))}/refold\n`,
  );

  expect(await first.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  expect(await ask(secondUrl, query)).toEqual({ data: { balance: { owner: 'Ada' } } });
  expect(await second.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  expect(isRunning()).toBe(false);
  expect(await refold('url').ended).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No embedded PostgreSQL'),
  });

  // Production needs the option.
  const unnamed = await refold('start').ended;
  expect(unnamed).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'refold: No database is configured. Set DATABASE_URL, or database.url in the configuration. To run an embedded PostgreSQL with its data in .refold/, use --embedded.\n',
  });
  expect(isRunning()).toBe(false);
  const asked = refold('start', '--embedded');
  expect(await ask(await asked.url(), '{ balance(accountId: "a") { owner } }')).toEqual({
    data: { balance: { owner: 'Ada' } },
  });
  expect(await asked.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });

  // A single command starts the server, and stops it, also if the command is interrupted.
  const alone = await refold('status', '--json').ended;
  expect(JSON.parse(alone.stdout).versions).toMatchObject([{ id: 'balance@1', position: '1', health: 'UNOWNED' }]);
  expect(isRunning()).toBe(false);
  const watching = refold('status', '--watch', '--json');
  await watching.prints(/"versions"/);
  expect(await watching.end('SIGINT')).toMatchObject({ code: 130, stderr: '' });
  await until(() => !isRunning());

  const again = refold('dev');
  const { data } = (await ask(await again.url(), '{ balance(accountId: "a") { owner } }')) as { data: unknown };
  expect(data).toEqual({ balance: { owner: 'Ada' } });
  expect(await again.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  expect(isRunning()).toBe(false);
});

test('an unmigrated application starts and imports at the same time, on its own server', async () => {
  const cwd = await userFolder({ 'refold.config.ts': importing, 'openings.txt': 'a\nb' });
  const refold = (...cliArguments: string[]) => startCli(cliArguments, { cwd, env: environment });
  const start = refold('start', '--embedded');
  const commands = [
    refold('import', 'openings', 'openings.txt', '--json'),
    refold('status', '--json'),
    refold('check'),
  ];
  const [imported, ...others] = await Promise.all(commands.map(({ ended }) => ended));
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(imported?.stdout ?? '')).toMatchObject({ lines: 2, written: 2 });
  for (const other of others) expect(other).toMatchObject({ code: 0, stderr: '' });
  const url = await start.url();
  const balances = { data: { balances: { totalCount: 2 } } };
  await until(async () => isDeepStrictEqual(await ask(url, '{ balances { totalCount } }'), balances));
  expect(await start.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(join(cwd, embeddedDataDir, 'postmaster.pid'))).toBe(false);
});

test('a program migrates its own server, in production as well', async () => {
  const cwd = await userFolder({
    'refold.config.ts': application,
    'program.ts': `
      import { createRefold } from '${resolve('src/index.ts')}';
      import config from './refold.config.ts';
      const refold = await createRefold(config, { role: 'worker' });
      console.log(JSON.stringify((await refold.status()).map(({ name }) => name)));
      await refold.stop();`,
  });
  const env = { ...process.env, ...environment, NODE_ENV: 'production' };
  const program = await promisify(execFile)(process.execPath, ['program.ts'], { cwd, env });
  expect(program).toEqual({ stdout: '["balance"]\n', stderr: '' });
});

test('a failed start stops the server that it started', async () => {
  const cwd = await userFolder({ 'refold.config.ts': application });
  const failed = await startCli(['dev'], { cwd, env: { ...environment, HOST: '192.0.2.1' } }).ended;
  expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining("can't listen on port 0") });
  expect(existsSync(join(cwd, embeddedDataDir, 'PG_VERSION'))).toBe(true);
  expect(existsSync(join(cwd, embeddedDataDir, 'postmaster.pid'))).toBe(false);
});

test('with starts and commands at random, concurrently, an application has one server, and none in the end', async () => {
  // Run it manually with more: COMMANDS=500 npm run test:programs -- test/cli/embedded.test.ts -t 'at random' --testTimeout=7200000
  const commands = Number(process.env.COMMANDS ?? effort(6, 3));
  const seed = Number(process.env.SEED ?? new Date().toISOString().slice(0, 10).replaceAll('-', '')); // another every day
  console.info(`seed ${seed}`);
  const random = seeded(seed);
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T; // none is empty
  const cwd = await userFolder({ 'refold.config.ts': application });
  const refold = (...cliArguments: string[]) => startCli(cliArguments, { cwd, env: environment });
  expect(await refold('migrate').ended).toMatchObject({ code: 0, stderr: '' });

  let opened = 0;
  async function serve(cliArguments: readonly string[], holdMs: number, signal: NodeJS.Signals): Promise<void> {
    const start = refold(...cliArguments);
    const id = opened++;
    const mutation = `mutation { openAccount(input: { accountId: "${id}", owner: "Ada" }, idempotencyKey: "${id}") { streamVersion } }`;
    const url = await start.url();
    const answer = await ask(url, mutation);
    expect(answer, start.printed.stdout).toEqual({ data: { openAccount: { streamVersion: 1 } } });
    await new Promise((resolve) => setTimeout(resolve, holdMs)); // meanwhile others start and end
    expect(await start.end(signal)).toMatchObject({ code: 0, stderr: '' });
  }
  async function command(cliArguments: readonly string[]): Promise<void> {
    const { code, stderr } = await refold(...cliArguments).ended;
    if (cliArguments[0] === 'url' && code === 1)
      expect(stderr).toMatch(/^refold: No embedded PostgreSQL runs in .*\n$/);
    else expect({ cliArguments, code, stderr }).toEqual({ cliArguments, code: 0, stderr: '' });
  }
  const starts = [['dev'], ['start', '--embedded'], ['start', '--embedded', '--role', 'gateway']];
  const asked = [['status', '--json'], ['check'], ['migrate'], ['history', 'balance'], ['url']];
  const drawn = Array.from({ length: commands }, () => {
    if (random() >= 0.4) return command.bind(undefined, pick(asked));
    return serve.bind(undefined, pick(starts), random() * 1000, pick<NodeJS.Signals>(['SIGINT', 'SIGTERM']));
  });
  const next = drawn.values();
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (const run of next) await run();
    }),
  );

  const dataDir = join(cwd, embeddedDataDir);
  const hasServer = () => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(dataDir);
  // The file disappears a moment before its process.
  await until(() => !existsSync(join(dataDir, 'postmaster.pid')) && !hasServer());
  // All of them wrote to the same log.
  const server = await startEmbeddedPostgres({ dataDir });
  const db = createDatabase({ url: server.url });
  expect(await db.query({ text: 'select count(*)::int as events from refold.events' })).toEqual([{ events: opened }]);
  await db.close();
  await server.stop();
});
