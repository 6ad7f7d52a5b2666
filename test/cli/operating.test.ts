import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startRuntime } from '../../src/runtime/runtime.ts';
import { losingProcesses } from '../../src/runtime/versions/answering-versions.ts';
import { readLiveProcesses } from '../../src/store/ownership/live-processes.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { readRegistry } from '../../src/store/registry/registry.ts';
import { runCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
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

const environment = () => ({ DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn' });
const application = (projections: string, before = '') =>
  applicationFile(`${before}\nexport default defineConfig({ projections: [${projections}] });`);
const run = (config: string, ...cliArguments: string[]) =>
  runCliHere([...cliArguments, '--config', config], environment());
/** In a process of its own. Once for each command, because only this shows that it ends its process. */
const runAlone = (config: string, ...cliArguments: string[]) =>
  runCli([...cliArguments, '--config', config], { env: environment() });

/** Runs the application until its versions are idle; in this process, because another takes seconds to start. */
async function deploy(file: string): Promise<void> {
  const { default: config } = await import(pathToFileURL(file).href);
  const logger = pino({ level: 'silent' });
  const worker = { url: database.url, owner: 'worker', development: false, maintain: true, logger };
  const runtime = await startRuntime({ config, ...worker });
  await until(async () => (await readRegistry(db)).every(({ state }) => state !== 'building'));
  await runtime.stop();
}

const balance = (version: number, columns: string, more = '') => `defineProjection({
  name: 'balance', version: ${version}, events: account,
  table: { accountId: t.text().primaryKey(), ${columns} },
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) }, ${more}
})`;

test('check exits with 1 if there are problems, and distinguishes notes from problems', async () => {
  await deploy(await application(balance(1, 'owner: t.text()')));
  const next = await application(`${balance(1, 'owner: t.text()')}, ${balance(2, 'owner: t.text().nullable()')}`);
  const planned = await run(next, 'check');
  expect(planned.code).toBe(0);
  expect(planned.stdout).toMatch(/^note {5}balance@2 is new: [\s\S]*\nNo problem found\.\n$/);
  const edited = await runAlone(await application(balance(1, 'owner: t.text().nullable()')), 'check', '--json');
  expect(edited.code).toBe(1);
  expect(JSON.parse(edited.stdout)).toMatchObject({ ok: false, findings: [{ kind: 'problem' }] });
});

test('check compares a schema file, and says when migrations are pending', async () => {
  const config = await application('openingsV1');
  const file = join(await userFolder(), 'schema.graphql');
  expect(await runAlone(config, 'schema', '--out', file)).toMatchObject({ code: 0 });
  expect(await run(config, 'check', '--schema', file)).toMatchObject({ code: 0 });
  await writeFile(file, (await readFile(file, 'utf8')).replace('opened', 'closed'));
  await db.query({ text: `delete from refold.migrations where name = '0011_evolution'` });
  const found = await run(config, 'check', '--schema', file);
  expect(found.code).toBe(1);
  expect(found.stdout).toBe(
    [
      `problem  '${file}' is not the schema of the declarations. Write it with 'refold schema --out ${file}'.`,
      "problem  The database lacks 1 of Refold's migrations (0011_evolution). Run 'refold migrate', then check again.",
      '2 problems found.\n',
    ].join('\n'),
  );
});

test('history shows every transition with actor and reason, of all versions or of one', async () => {
  const config = await application('balanceV1, openingsV1');
  await deploy(config);
  expect(await runAlone(config, 'retire', 'openings@1', '--force', '--reason', 'nobody reads it')).toMatchObject({
    code: 0,
  });
  const all = await runAlone(config, 'history');
  expect(all.stdout).toMatch(/^at +of +step +actor +reason\n/);
  expect(all.stdout).toMatch(/openings@1 +active → retired +\S+@\S+ +nobody reads it\n$/);
  expect(all.stdout).toMatch(/balance@1 +building → ready/);
  const one = JSON.parse((await run(config, 'history', 'openings@1', '--json')).stdout);
  expect(one.map(({ operation, reason }: Record<string, string>) => [operation, reason])).toEqual([
    ['building', 'declared'],
    ['building → ready', 'the log is empty'],
    ['ready → active', "the log is empty, activation 'auto'"],
    ['active → retired', 'nobody reads it'],
  ]);
  expect(JSON.parse((await run(config, 'history', 'balance', '--limit', '1', '--json')).stdout)).toMatchObject([
    { of: 'balance@1', operation: 'ready → active' },
  ]);
});

test('retire refuses to leave live processes without a version for their clients, except with --force', async () => {
  const both = await application('balanceV1, balanceV2');
  await deploy(both);
  const gatewayOf = async (file: string, owner: string) => {
    const { default: config } = await import(pathToFileURL(file).href);
    const options = { url: database.url, development: false, maintain: false, serves: true };
    return startRuntime({ config, owner, ...options, logger: pino({ level: 'silent' }) });
  };
  const old = await gatewayOf(await application('balanceV1'), 'old:1');
  const next = await gatewayOf(both, 'next:1');
  await until(async () => (await readLiveProcesses(db)).length === 2);
  const { stdout } = await run(both, 'status');
  expect(stdout).toMatch(/^next:1 +gateway +balance@1, balance@2\nold:1 +gateway +balance@1\n/m);
  expect(stdout).toMatch(/^read model +answered by +in\nbalance +balance@2 +next:1\nbalance +balance@1 +old:1\n/m);
  expect(await run(both, 'retire', 'balance@1')).toMatchObject({
    code: 1,
    stderr:
      "refold: balance@1 answers the clients of old:1 (gateway): this process declares no other active version of 'balance'. Deploy the next version there first. Use --yes to do it anyway.\n",
  });
  // It was killed earlier than a live process can be silent.
  await announced('dead:1', 'balance@1', '-16 seconds');
  await announced('newest:1', 'balance@2', '1 hour');
  expect(await run(both, 'retire', 'balance@2', '--force')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('answers the clients of newest:1 (gateway): this process declares no'),
  });
  expect((await losingProcesses(db, 'balance', 1)).map(({ name }) => name)).toEqual(['old:1']);
  await db.query({ text: `delete from refold.processes where name in ('dead:1', 'newest:1')` });
  expect(await run(both, 'retire', 'balance@1', '--yes')).toMatchObject({ code: 0 });
  await old.stop();
  expect(await readLiveProcesses(db)).toEqual([
    { name: 'next:1', role: 'gateway', versions: ['balance@1', 'balance@2'] },
  ]);
  await next.stop();
});

/** Announces a gateway with this time of its last heartbeat. */
async function announced(name: string, version: string, heard: string): Promise<void> {
  await db.query({
    text: `
      insert into refold.processes (id, name, declares, owns, keeps, role, versions, heartbeat_at)
      values (gen_random_uuid(), $1, '{}', '{}', '{}', 'gateway', array[$2], now() + $3::interval)`,
    values: [name, version, heard],
  });
}

test('status lists declared versions that no process has started yet', async () => {
  await deploy(await application('balanceV1'));
  const both = await application('balanceV1, balanceV2');
  const { stdout } = await run(both, 'status');
  expect(stdout).toMatch(/^balance@1 +active +unowned/m);
  expect(stdout).toMatch(/^balance@2 +not registered( +-)+$/m);
  expect(JSON.parse((await run(both, 'status', '--json')).stdout)).toMatchObject({
    versions: [{ id: 'balance@1', lagEvents: { value: 0 }, lagSeconds: 0, eventsPerSecond: expect.any(Number) }],
    notRegistered: ['balance@2'],
  });
});

test('status shows whether the rows of an inline version commit with appends', async () => {
  const inlineVersion = (version: number) => balance(version, 'owner: t.text()', "mode: 'inline'");
  const config = await application(`${inlineVersion(1)}, ${inlineVersion(2)}`);
  await deploy(config);
  await db.query({ text: `select nextval('refold.inline_lives')` }); // as if it had become live
  for (const inline of ['building', 'live']) {
    await db.query({ text: 'update refold.inline_versions set status = $1', values: [inline] });
    const { stdout } = await run(config, 'status');
    expect(stdout).toMatch(new RegExp(`^balance@1 +active \\(inline: ${inline}\\) `, 'm'));
    const versions = JSON.parse((await run(config, 'status', '--json')).stdout).versions;
    expect(versions).toMatchObject([1, 2].map((version) => ({ id: `balance@${version}`, state: 'ACTIVE', inline })));
  }
  // Appends keep it current, although no processor does.
  expect((await run(config, 'rollback', 'balance')).stdout).toBe(
    'balance@1 answers again. balance@2 stays current and ready.\n',
  );
});

test('diff shows what clients would lose, and activate needs a confirmation for it', async () => {
  await deploy(await application(balance(1, 'owner: t.text()')));
  const both = await application(
    `${balance(1, 'owner: t.text()')}, ${balance(2, 'owner: t.text().nullable()', "activation: 'manual'")}`,
  );
  await deploy(both);
  const compared = await runAlone(both, 'diff', 'balance@1', 'balance@2');
  expect(compared.stdout).toContain('clients of balance@1 would lose with balance@2:\n  Balance.owner changed type');
  const refused = await run(both, 'activate', 'balance@2');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /^refold: balance@2 would break clients of balance@1: 1 breaking change, see 'refold changes balance@2'\./,
  );
  expect(await runAlone(both, 'activate', 'balance@2', '--breaking')).toMatchObject({
    code: 0,
    stdout: 'Warning: Clients that use what it removes will fail.\nbalance@2 is active.\n',
  });
});

test('verify --payloads names each event that can not be read, or is read as something that its schema refuses', async () => {
  const config = (upcasters: string) =>
    applicationFile(`export default defineConfig({ events: [
      defineEvents('ledger', { Paid: z.object({ cents: z.int() }) }, { upcasters: { Paid: ${upcasters} } }),
    ] });`);
  await db.query({
    text: `
      insert into refold.events (stream_position, family, stream_id, type, payload, payload_version)
      select number, 'ledger', 'a', 'Paid', payload, version
      from (
        values (1, 1, '{"euros": 1}'::jsonb), (2, 1, '{"euros": 1.001}'), (3, 1, '{}'), (4, 2, '{"cents": 5}')
      ) as given (number, version, payload)`,
  });
  const careful = await config('[(paid: any) => ({ cents: Math.round((paid.euros ?? 0) * 100) })]');
  expect(await runAlone(careful, 'verify', '--payloads')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^All payloads up to position \d+ can be read and match their schemas: 4 events\.\n$/,
    ),
  });
  const careless = await config(
    '[(paid: any) => { if (paid.euros === undefined) throw new Error("boom"); return { cents: paid.euros * 100 }; }]',
  );
  const { code, stdout } = await run(careless, 'verify', '--payloads');
  expect(code).toBe(1);
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^2 of 4 payloads up to position \d+ have problems:$/),
    expect.stringMatching(/^ {2}ledger 'Paid' \(payload version 1\) at position \d+, stream 'a': cents: /),
    expect.stringMatching(
      /^ {2}ledger 'Paid' \(payload version 1\) at position \d+, stream 'a': An upcaster .*: boom$/,
    ),
    '',
  ]);
});
