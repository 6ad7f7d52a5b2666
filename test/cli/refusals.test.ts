import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createRefold, defineConfig } from '../../src/index.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { createTestDatabase, dropDatabase, type TestDatabase } from '../support/test-database.ts';
import { applicationFile, userFolder } from './application-file.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.drop(); // fails if a command left a connection open
});

const balances = 'export default defineConfig({ projections: [balanceV1] });';

type Environment = Readonly<Record<string, string>>;

const environment = (env: Environment) => ({ DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'silent', ...env });

/** Runs a command on the test's database with an application of this source. */
async function refold(cliArguments: readonly string[], text = balances, env: Environment = {}): Promise<CliResult> {
  return runCliHere([...cliArguments, '--config', await applicationFile(text)], environment(env));
}

/** In a process of its own: files are loaded by Node, and the end of the process is its own. */
async function refoldAlone(
  cliArguments: readonly string[],
  text = balances,
  env: Environment = {},
): Promise<CliResult> {
  return runCli([...cliArguments, '--config', await applicationFile(text)], { env: environment(env) });
}

/** Expects one line that says what to do, without a stack or other output, and an exit code for the failure. */
function expectRefusal({ code, stdout, stderr }: CliResult, message: string | RegExp): void {
  expect({ code, stdout, lines: stderr.split('\n').length }, stderr).toEqual({ code: 1, stdout: '', lines: 2 });
  if (typeof message === 'string') expect(stderr).toBe(`refold: ${message}\n`);
  else expect(stderr).toMatch(message);
}

describe('an impossible declaration is named, with the fix', () => {
  test('an event type that no family defines', async () => {
    const text = `export default defineConfig({ projections: [defineProjection({
      name: 'openings', version: 1, events: account, table: { id: t.text().primaryKey() }, key: (event) => event.streamId,
      evolve: { Opend: () => ({}) },
    })] });`;
    expectRefusal(
      await refold(['start'], text),
      "openings@1: evolve handles 'Opend', which account does not define. Did you mean 'Opened'?",
    );
  });

  test('two projections of one name and version', async () => {
    const text = 'export default defineConfig({ projections: [balanceV1, { ...balanceV1 }] });';
    expectRefusal(await refold(['start'], text), 'balance@1: is declared twice. Give one of them the next version.');
  });

  test('an extension of the schema that is not repeatable', async () => {
    const text = `let calls = 0;
    export default defineConfig({ schema: extendSchema(({ builder }) => {
      calls++;
      builder.queryField('call' + calls, (t) => t.int({ resolve: () => 1 }));
    }) });`;
    expectRefusal(
      await refold(['check'], text),
      'extendSchema: it added something else when it was called again: Query.call1 was removed. It is called for each schema, such as at an activation. Create everything inside of its function, and depend on nothing that changes.',
    );
  });

  test('an unknown option', async () => {
    const text = 'export default defineConfig({ projection: [balanceV1] });';
    expectRefusal(await refold(['dev'], text), "unknown option 'projection' of config. Did you mean 'projections'?");
  });
});

describe('an invalid application file', () => {
  test('is missing', async () => {
    expectRefusal(
      await runCliHere(['status', '--config', 'nowhere.ts']),
      "There is no file 'nowhere.ts'. Name the file that has 'export default defineConfig({ … })' with --config FILE.",
    );
    expectRefusal(
      await runCli(['status'], { cwd: await userFolder() }),
      "There is no refold.config.ts, refold.config.js, refold.config.mjs in this folder. Name the file that has 'export default defineConfig({ … })' with --config FILE.",
    );
  });

  test('has no default export, or a wrong one', async () => {
    for (const text of ['export const app = 1;', 'export default { projections: [balanceV1] };']) {
      expectRefusal(
        await refold(['status'], text),
        /^refold: '.*\/app\.ts' does not export a defineConfig result\. Write 'export default defineConfig\(\{ … \}\)'\.$/m,
      );
    }
  });

  test.each([
    ['is not TypeScript', 'export default {', /can't be loaded: .* \(at \/.*app\.ts:4\)$/m],
    ['imports a missing file', "import './nothing.ts';", /can't be loaded: Cannot find module '.*nothing\.ts'/],
    ['throws', "\n\nthrow new Error('no luck');", /can't be loaded: no luck \(at \/.*app\.ts:6\)$/m],
  ])('%s', async (_, text, message) => {
    expectRefusal(await refoldAlone(['status'], text), message);
  });
});

describe('a mistake in the command line', () => {
  test.each([
    [['statu'], "'refold' has no command 'statu'. Did you mean 'status'? See 'refold --help'."],
    [['--jsn'], "'refold' has no option '--jsn'. It knows '--help'. See 'refold --help'."],
    [['status', '--jsn'], "'refold status' has no option '--jsn'. Did you mean '--json'? See 'refold status --help'."],
    [['status', '--json=yes'], "'refold status' takes no value for '--json'. See 'refold status --help'."],
    [['status', '--config'], "'refold status' needs a value for '--config'. See 'refold status --help'."],
    [
      ['start', '--role', 'gatway'],
      "'refold start' takes 'all', 'gateway', 'worker' for '--role', found 'gatway'. See 'refold start --help'.",
    ],
    [['import', 'retail'], "'refold import' lacks FILE: refold import NAME FILE. See 'refold import --help'."],
    [
      ['snapshot', 'drop', 'balance@1'],
      "'refold snapshot drop' lacks --snapshot ID. See 'refold snapshot drop --help'.",
    ],
    [
      ['activate', 'balance@2', 'now'],
      "'refold activate' does not know what to do with 'now': refold activate VERSION. See 'refold activate --help'.",
    ],
  ])('%j', async (cliArguments, message) => {
    expectRefusal(await runCliHere(cliArguments), message);
  });

  test.each([
    [['activate', 'balance'], "'balance' is not a projection version; write it like cart_summary@2."],
    [['activate', 'balance@7'], "balance@7 is not in the registry; 'refold status' lists the versions."],
    [['rebuild', 'balanse@1'], "The application declares no balanse@1. Did you mean 'balance@1'?"],
    [
      ['rollback', 'balance'],
      "Can't roll back: no version of 'balance' is active, so nothing could answer in its place.",
    ],
    [['retire', 'balance@1', '--grace', 'soon'], "--grace is a number of hours, found 'soon'."],
  ])('%j', async (cliArguments, message) => {
    expectRefusal(await refold(cliArguments), message);
  });

  test('help and version are not mistakes', async () => {
    expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    const help = await runCli(['import', '--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('refold import');
  });
});

describe('an unsuitable environment', () => {
  test.each([
    ['PORT', 'abc', "PORT is a whole number from 0 to 65535, found 'abc'."],
    ['LOG_LEVEL', 'loud', "LOG_LEVEL is one of trace, debug, info, warn, error, fatal, silent; found 'loud'."],
    ['LOG_FORMAT', 'xml', "LOG_FORMAT is json or text; found 'xml'."],
    ['PORT', '70000', "PORT is a whole number from 0 to 65535, found '70000'."],
    ['DATABASE_URL', 'mysql://localhost/shop', "DATABASE_URL is not a PostgreSQL URL; it starts with 'postgres://'."],
    [
      'DATABASE_URL',
      'postgres://localhost:secret/shop',
      "DATABASE_URL can't be read. Write it as 'postgres://user:password@host:port/database', with percent signs for what is special in the password; several hosts as 'host1:port,host2:port', and 'target_session_attrs' as any, read-write, read-only, primary, standby or prefer-standby.",
    ],
    [
      'DATABASE_URL',
      'postgres://user:secret@127.0.0.1:1/shop',
      'PostgreSQL at 127.0.0.1:1/shop: nothing listens there. Start the server, or correct host and port in its URL: DATABASE_URL, or that of a read store.',
    ],
    [
      'HOST',
      '192.0.2.1',
      "This process can't listen on port 0 of 192.0.2.1: listen EADDRNOTAVAIL: address not available 192.0.2.1. Choose another place with HOST and PORT, or gateway.host and gateway.port in the configuration.",
    ],
  ])('%s=%s', async (name, value, message) => {
    const text = 'export default defineConfig({});';
    expectRefusal(await refold(['start'], text, { [name]: value }), message);
  });

  test.each([
    [
      ['--role', 'gateway', '--health-port', '9090'],
      '--health-port is for --role worker. With --role gateway the process answers /health and /metrics on its own port.',
    ],
    [['--role', 'worker', '--health-port', 'http'], "--health-port is a number from 0 to 65535, found 'http'."],
  ])('start %s', async (options, message) => {
    expectRefusal(await refold(['start', ...options], 'export default defineConfig({});'), message);
  });

  test('a database that does not exist', async () => {
    const url = new URL(database.url);
    url.pathname = '/nowhere';
    expectRefusal(
      await refoldAlone(['start'], balances, { DATABASE_URL: url.href }),
      /^refold: PostgreSQL at \S+\/nowhere: the database does not exist\. Create it, or correct its name in its URL: DATABASE_URL, or that of a read store\.$/m,
    );
  });

  test('a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo; // listens on a port
    const refusal = await refoldAlone(['start'], 'export default defineConfig({});', { PORT: String(port) });
    const start = `Port ${port} of 127.0.0.1 is taken by another program. Stop that program, or choose another port: PORT=`;
    expect(refusal.stderr).toContain(start);
    expectRefusal(refusal, /or gateway\.port in the configuration \(0 takes a free one\)\.$/m);
  });
});

test('a reader that closes the pipe early causes no error', async () => {
  const command = startCli(['status', '--watch', '--json', '--config', await applicationFile(balances)], {
    env: { DATABASE_URL: database.url },
  });
  await command.prints(/"versions"/);
  command.child.stdout?.destroy();
  expect(await command.ended).toMatchObject({ code: 141, stderr: '' });
});

test('the error for a role without privileges names the missing grants', async () => {
  const name = `refold_weak_${process.pid}`;
  const url = new URL(database.url);
  // A server with passwords lets this role log in with the other one's password.
  const password = url.password === '' ? '' : ` password '${decodeURIComponent(url.password)}'`;
  await db.query({ text: `create role ${name} login${password}` });
  onTestFinished(async () => {
    await db.query({ text: `drop role ${name}` });
  });
  url.username = name;
  expectRefusal(
    await refold(['start'], balances, { DATABASE_URL: url.href }),
    new RegExp(
      `: the role ${name} lacks privileges\\. As their owner run \`grant .*\`grant select, insert on refold\\.events to ${name}\``,
    ),
  );
});

describe('a database that is not migrated', () => {
  let bare: Database;

  beforeAll(async () => {
    const name = `refold_bare_${process.pid}`;
    await db.query({ text: `create database ${name}` });
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    bare = createDatabase({ url: url.href });
  });
  afterAll(async () => {
    const name = new URL(bare.url).pathname.slice(1);
    await bare.close();
    await dropDatabase(database.superuserUrl, name);
  });

  const env = () => ({ DATABASE_URL: bare.url, NODE_ENV: 'production' });

  test('is refused in production with the command to run, and nothing is written', async () => {
    const lacks =
      /^refold: The database lacks \d+ of Refold's migrations \(0001_event_log, .*\)\. Run `refold migrate`\.$/m;
    expectRefusal(await refold(['start'], balances, env()), lacks);
    expectRefusal(await refold(['status'], balances, env()), lacks);
    expect(await bare.query({ text: `select nspname from pg_namespace where nspname like 're%'` })).toEqual([]);
  });

  test('is refused by name if it is a read store', async () => {
    const env = { REFOLD_READ_STORES: JSON.stringify({ analytics: { url: bare.url } }) };
    const lacks = /^refold: The read store 'analytics': The database lacks \d+ of Refold's migrations /m;
    expectRefusal(await refold(['status'], balances, env), lacks);
  });

  test('is migrated once, even if the command runs repeatedly', async () => {
    const runs = await Promise.all([1, 2].map(() => refoldAlone(['migrate'], balances, env())));
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(runs.map(({ stdout }) => stdout).sort()).toEqual([
      expect.stringMatching(/^Applied 0001_event_log, .*\.\n$/),
      'The database is up to date.\n',
    ]);
    expect(await refold(['migrate'], balances, env())).toMatchObject({
      code: 0,
      stdout: 'The database is up to date.\n',
    });
    expect(await refold(['status'], balances, env())).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^version .*\nbalance@1 +not registered( +-)+\n$/),
    });
  });
});

test('refold migrate and a start that migrates refuse a read store that is the database of a log, and do not migrate it', async () => {
  const migrate = (url: string) =>
    refold(['migrate'], balances, { REFOLD_READ_STORES: JSON.stringify({ analytics: { url } }) });
  expectRefusal(
    await migrate(database.url),
    /^refold: The read store 'analytics': PostgreSQL at .*: It is the database of the log, which is the store 'default'\. /m,
  );
  const other = await createTestDatabase();
  onTestFinished(() => other.drop());
  const log = createDatabase({ url: other.superuserUrl });
  onTestFinished(() => log.close());
  await log.query({
    text: `
      insert into refold.events (family, stream_id, stream_position, type, payload)
      values ('account', 'a', 1, 'Opened', '{}')`,
  });
  await log.query({ text: `delete from refold.migrations where name = (select max(name) from refold.migrations)` });
  const applied = () => log.query({ text: 'select * from refold.migrations order by name' });
  const before = await applied();
  expectRefusal(await migrate(other.url), /^refold: The read store 'analytics': .*: It holds events, /m);
  expect(await applied()).toEqual(before);
  const config = {
    database: { url: database.url },
    readStores: { analytics: { url: other.url } },
    gateway: { port: 0 },
  };
  await expect(createRefold(defineConfig({ projections: [], ...config }), { migrate: true })).rejects.toThrow(
    /^The read store 'analytics': .*: It holds events, /,
  );
  expect(await applied()).toEqual(before);
});

describe('versions that differ from the built ones', () => {
  test('a changed table, and an active version without a declaration, are refused without any change', async () => {
    const { default: first } = await import(pathToFileURL(await applicationFile(balances)).href);
    const gateway = { ...first.gateway, port: 0 };
    const refoldBefore = await createRefold({ ...first, gateway, database: { ...first.database, url: database.url } });
    await refoldBefore.stop();
    const before = await everything();

    const otherTable = `export default defineConfig({ projections: [openingsV1, defineProjection({
      name: 'balance', version: 1, events: account, table: { accountId: t.text().primaryKey(), amount: t.decimal(20, 4) },
      key: (event) => event.streamId, evolve: { Opened: () => ({ amount: '0' }) },
    })] });`;
    expectRefusal(
      await refold(['start'], otherTable),
      'balance@1: its table is declared differently from the one in the database. Undo the change and declare it as balance@2 beside this version.',
    );
    expectRefusal(
      await refold(['start'], 'export default defineConfig({ projections: [openingsV1] });'),
      "balance@1 is active, but this program declares no active version of 'balance': its readers would lose it. Declare balance@1 again, or take it out of service with 'refold retire balance@1'.",
    );
    expect(await everything()).toEqual(before);
  });
});

/** All tables, and the content of the registry. */
async function everything(): Promise<unknown> {
  return [
    await db.query({ text: `select schemaname, tablename from pg_tables where schemaname like 're%' order by 1, 2` }),
    await db.query({ text: 'select * from refold.projections order by name, version' }),
    await db.query({ text: 'select * from refold.transitions order by id' }),
  ];
}
