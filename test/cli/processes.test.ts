import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { registryLockKey } from '../../src/store/server/lock-keys.ts';
import { type CliProcess, runCli, startCli } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile } from './application-file.ts';

let database: TestDatabase;
let db: Database;
let config: string;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  config = await applicationFile(
    `export default defineConfig({
      projections: [balanceV1, balanceV2, openingsV1],
      commands: [openAccount, credit],
      gateway: { positionTimeout: 300_000, drainSeconds: Number(process.env.DRAIN ?? 0) },
    });`,
  );
});
afterEach(async () => {
  await db.close();
  await database.drop(); // fails if a process left a connection open
});

const environment = () => ({ env: { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn' } });
const start = (...cliArguments: string[]) => startCli([...cliArguments, '--config', config], environment());
const run = (...cliArguments: string[]) => runCli([...cliArguments, '--config', config], environment());

interface LogLine {
  readonly level: string;
  readonly msg: string;
}

const linesOf = (stdout: string): readonly LogLine[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** Its first lines, once it has printed so many. */
const untilLines = (process: CliProcess, count: number) =>
  until(() => process.printed.stdout.split('\n').length > count && linesOf(process.printed.stdout));

test('a terminal gets text, as LOG_FORMAT=text does', async () => {
  const process = startCli(['start', '--config', config], { env: { ...environment().env, LOG_FORMAT: 'text' } });
  await process.prints(/^Refold is running\.\n {2}GraphQL +http:\/\/127\.0\.0\.1:\d+\/graphql\n/m);
  expect(await process.end('SIGTERM')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nrefold: SIGTERM, stopping\. /),
  });
});

async function ask(url: string, query: string): Promise<unknown> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

/** Number of Refold's sessions in the test's database, without the test's own. */
async function sessions(): Promise<number> {
  const [row] = await db.query<{ count: bigint }>({
    text: `select count(*) from pg_stat_activity
      where datname = current_database() and application_name like 'refold%' and pid <> pg_backend_pid()`,
  });
  return Number(row?.count);
}

test('a gateway and a worker in two processes work together', async () => {
  const worker = start('start', '--role', 'worker');
  await worker.prints(/Refold maintains the read models/);
  const [started] = await untilLines(worker, 1);
  expect(started).toMatchObject({ level: 'info', database: expect.stringMatching(/^postgres/) });
  const gateway = start('start', '--role', 'gateway');
  const url = await gateway.url();
  expect(await (await fetch(`${url}/health/ready`)).json()).toMatchObject({ ready: true });
  const opened = 'openAccount(input: { accountId: "a", owner: "Ada" }) { balance { owner amount } }';
  expect(await ask(url, `mutation { ${opened} }`)).toEqual({
    data: { openAccount: { balance: { owner: 'Ada', amount: '0.00' } } },
  });

  // Without the worker, no process folds the demanded events; the query waits for the next worker.
  expect(await worker.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  const credited = (await ask(url, 'mutation { credit(input: { accountId: "a", amount: "5" }) { position } }')) as {
    data: { credit: { position: string } };
  };
  const { position } = credited.data.credit;
  const demanding = ask(url, `query @after(position: "${position}") { balance(accountId: "a") { amount } }`);
  const next = start('start', '--role', 'worker');
  expect(await demanding).toEqual({ data: { balance: { amount: '5.00' } } });
  expect(await next.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  expect(await gateway.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
});

describe.each([
  ['dev', /GraphQL +http/, ['dev']],
  ['start', /GraphQL +http/, ['start']],
  ['start --role worker', /maintains the read models/, ['start', '--role', 'worker']],
  ['start --role gateway', /GraphQL +http/, ['start', '--role', 'gateway']],
] as const)('%s', (_, started, cliArguments) => {
  test.each(['SIGINT', 'SIGTERM'] as const)('ends in order on %s, and leaves nothing open', async (signal) => {
    const process = start(...cliArguments);
    await process.prints(started);
    const { code, stdout, stderr } = await process.end(signal);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // No terminal reads it, so each line is an object. If the machine is too busy to open a connection in time, another line says so.
    const lines = linesOf(stdout);
    const told = lines.filter(({ level }) => level === 'info').map(({ msg }) => msg);
    expect(told[0]).toMatch(started);
    expect(told.at(-1)).toBe(`${signal}, stopping. A second signal ends it at once.`);
    expect(lines.filter(({ level }) => level !== 'info' && level !== 'warn')).toEqual([]);
    await until(async () => (await sessions()) === 0);
  });
});

test('a stopping gateway is not ready, and answers until its balancer has noticed', async () => {
  const gateway = startCli(['start', '--config', config], { env: { ...environment().env, DRAIN: '600' } });
  const url = await gateway.url();
  gateway.child.kill('SIGTERM');
  await gateway.prints(/SIGTERM, stopping/);
  const ready = await until(async () => {
    const response = await fetch(`${url}/health/ready`);
    return response.status === 503 && response.json();
  });
  expect(ready).toMatchObject({ ready: false, stopping: true });
  const opened = 'mutation { openAccount(input: { accountId: "a", owner: "Ada" }) { balance { owner } } }';
  expect(await ask(url, opened)).toEqual({ data: { openAccount: { balance: { owner: 'Ada' } } } });
  // A later signal ends it at once; a second signal within a moment counts as the first.
  await until(() => {
    gateway.child.kill('SIGTERM');
    return gateway.child.exitCode !== null;
  });
  expect(await gateway.ended).toMatchObject({ code: 130 });
});

test('two signals at the same moment, from a terminal and from npm, count as one', async () => {
  const process = start('start');
  await process.url();
  process.child.kill('SIGINT');
  expect(await process.end('SIGINT')).toMatchObject({ code: 0 });
});

test('a signal during the start stops everything that has started', async () => {
  const holder = await db.connect();
  await holder.query('select pg_advisory_lock($1)', [registryLockKey]);
  const process = start('start');
  // Only of this database: tests of other files wait for locks too.
  const waiting = `
    select from pg_locks
    where locktype = 'advisory'
      and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  await until(async () => (await db.query({ text: waiting })).length > 0);
  process.child.kill('SIGINT');
  await process.prints(/SIGINT, stopping/);
  await holder.query('select pg_advisory_unlock($1)', [registryLockKey]);
  holder.release();
  const { code, stdout } = await process.ended;
  expect(code).toBe(0);
  expect(stdout).not.toContain('Refold is running');
});

describe('status', () => {
  test('shows every version while a worker runs, and after it has ended', async () => {
    const worker = start('start', '--role', 'worker');
    await worker.prints(/maintains/);
    await until(async () => {
      const { versions } = JSON.parse((await run('status', '--json')).stdout);
      return versions.every(({ health }: { health: string }) => health === 'CURRENT');
    });
    const { stdout } = await run('status');
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]?.split(/ {2,}/)).toEqual([
      'version',
      'state',
      'health',
      'position',
      'lag',
      'behind',
      'events/s',
      'ETA',
      'owner',
    ]);
    expect(lines.slice(1, 4).map((line) => line.split(/ {2,}/).slice(0, 8))).toEqual(
      ['balance@1', 'balance@2', 'openings@1'].map((id) => [id, 'active', 'current', '0', '0', '-', '0', '-']),
    );
    expect(lines[1]).toMatch(new RegExp(`:${worker.child.pid}$`));
    expect(lines.slice(-2).map((line) => line.split(/ {2,}/))).toEqual([
      ['process', 'role', 'declares'],
      [expect.stringMatching(new RegExp(`:${worker.child.pid}$`)), 'worker', 'balance@1, balance@2, openings@1'],
    ]);

    await worker.end('SIGTERM');
    const after = await run('status', '--json');
    expect(after).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(after.stdout)).toMatchObject({
      versions: ['balance@1', 'balance@2', 'openings@1'].map((id) => ({
        id,
        state: 'ACTIVE',
        health: 'UNOWNED',
        owner: null,
        position: '0',
        head: '0',
        lag: '0',
        heldReason: null,
        error: null,
        rebuild: null,
        eventsPerSecond: 0,
        etaSeconds: null,
      })),
      stalls: [],
      lostOwners: [],
    });

    // The state after a process was killed and no other can take over.
    await db.query({ text: "update refold.processors set status = 'running', owner = 'far:1' where version = 1" });
    await db.query({
      text: `
        insert into refold.processes (id, name, declares, owns, keeps, heartbeat_at)
        values (gen_random_uuid(), 'far:1', '{}', '{}', '{}', now() - interval '70 minutes')`,
    });
    expect((await run('status')).stdout).toMatch(
      /\nfar:1 owns 2 of these and sent its last heartbeat 1h 10m ago: it was killed, or hangs\./,
    );
  });

  test('watches until Ctrl-C', async () => {
    const watching = start('status', '--watch', '--json');
    await until(() => (watching.printed.stdout.match(/"versions"/g)?.length ?? 0) >= 2);
    const { code, stderr } = await watching.end('SIGINT');
    expect({ code, stderr }).toEqual({ code: 130, stderr: '' });
    await until(async () => (await sessions()) === 0);
  });
});
