import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { defineConfig } from '../../../src/config/define-config.ts';
import { serverAccount } from '../../../src/store/embedded/embedded-binaries.ts';
import { startEmbeddedPostgres } from '../../../src/store/embedded/embedded-postgres.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/server/migrate.ts';
import { until } from '../../support/until.ts';

let folder: string;
let dataDir: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'refold-embedded-'));
  chmodSync(folder, 0o755); // if root runs the tests, another account runs the server
  dataDir = join(folder, 'postgres');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function query(url: string, text: string): Promise<object[]> {
  const db = createDatabase({ url });
  try {
    return await db.query({ text });
  } finally {
    await db.close();
  }
}

/** A process that owns a server until it receives a signal. */
function spawnOwner(env: NodeJS.ProcessEnv = {}): ChildProcess & { readonly stdout: Readable } {
  const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(join(import.meta.dirname, '../../../src/store/embedded/embedded-postgres.ts'))};
    const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)} });
    console.log(server.url);
    process.once('SIGINT', async () => { await server.stop(); console.log('stopped'); process.exit(); });
    process.once('SIGTERM', () => { throw new Error('nobody caught this'); });
    setInterval(() => {}, 1000);`;
  return spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
    env: { ...process.env, ...env },
  });
}

/** The same, once it has printed the server's URL. */
async function startOwner(env?: NodeJS.ProcessEnv): Promise<{ url: string; process: ChildProcess }> {
  const owner = spawnOwner(env);
  const lines = createInterface(owner.stdout);
  const [url = 'none'] = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
  return { url, process: owner };
}

const isThere = () => existsSync(join(dataDir, 'postmaster.pid'));
const hasProcess = () => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(dataDir);

/** A free port below the range of ephemeral ports, so no connection takes it between two starts. */
async function quietPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const listener = createServer();
    const free = await new Promise<boolean>((resolve) => {
      listener.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => listener.close(resolve));
    return port;
  }
}

test('an embedded server keeps its databases between runs and uses the given settings and port', async () => {
  const port = await quietPort();
  const first = await startEmbeddedPostgres({ dataDir, port });
  await migrate(first.url);
  await query(first.url, 'create table kept (id int)');
  await first.stop();
  await first.stop();
  expect(Number(new URL(first.url).port)).toBe(port);
  const second = await startEmbeddedPostgres({ dataDir, port, settings: { search_path: `'it''s', public` } });
  expect(second.url).toBe(first.url);
  expect(await query(second.url, `select current_setting('search_path') as path, count(*)::int from kept`)).toEqual([
    { path: `'it''s', public`, count: 0 },
  ]);
  await second.stop();
  await expect(query(first.url, 'select 1')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
});

test('an embedded server admits the connections of ten processes', async () => {
  const server = await startEmbeddedPostgres({ dataDir });
  const [admitted] = await query(server.url, `select current_setting('max_connections')::int as connections`);
  await server.stop();
  const { maxConnections } = defineConfig({}).database;
  expect(admitted).toEqual({ connections: expect.toSatisfy((count: number) => count > 10 * maxConnections) });
});

test('an embedded server is shared by the processes that use it, and the last one stops it', async () => {
  const first = await startOwner();
  const second = await startEmbeddedPostgres({ dataDir });
  expect(second.url).toBe(first.url);
  // Ctrl-C sends the signal to the whole process group, so this test does, too.
  process.kill(-(first.process.pid ?? 0), 'SIGINT');
  await once(first.process, 'close');
  expect(await query(second.url, 'select 1 as here')).toEqual([{ here: 1 }]);
  await second.stop();
  await expect(query(second.url, 'select 1')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
});

test('an embedded server is shared on a system without `ps`, such as a small image', async () => {
  const first = await startOwner();
  const path = join(folder, 'few-programs');
  mkdirSync(path);
  symlinkSync(execFileSync('which', ['id'], { encoding: 'utf8' }).trim(), join(path, 'id')); // root asks for the server's account
  const file = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8');
  const second = await startOwner({ PATH: path });
  expect(second.url).toBe(first.url);
  expect(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8')).toBe(file);
  for (const owner of [first, second]) {
    owner.process.kill('SIGINT');
    await once(owner.process, 'close');
  }
  expect(isThere()).toBe(false);
});

test('an error says what to do if root has no account for the server and cannot create one', () => {
  const path = join(folder, 'no-programs');
  mkdirSync(path);
  vi.stubEnv('PATH', path);
  const getuid = vi.spyOn(process, 'getuid').mockReturnValue(0);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    getuid.mockRestore();
  });
  expect(serverAccount).toThrow(
    expect.objectContaining({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('Create that user, run this as an ordinary user'),
    }),
  );
});

test('a start with other settings fails while another process uses the server, and the error names that process', async () => {
  const owner = await startOwner();
  await expect(startEmbeddedPostgres({ dataDir, settings: { work_mem: '1MB' } })).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringContaining(`in use by process ${owner.process.pid}, with other settings`),
  });
  expect(await query(owner.url, 'select 1 as here')).toEqual([{ here: 1 }]);
  owner.process.kill('SIGINT');
  await once(owner.process, 'close');
  await expect(query(owner.url, 'select 1')).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
});

test('many processes that start, use and leave a server at the same time share one server, and it stops in the end', async () => {
  const shared = join(folder, 'shared');
  const ends = ['await server.stop()', 'process.exit()', "throw new Error('nobody caught this')"];
  // For a longer run by hand: STARTS=500
  const starts = Number(process.env.STARTS ?? 12);
  const program = (end: string) => `
    import pg from 'pg';
    import { startEmbeddedPostgres } from ${JSON.stringify(join(import.meta.dirname, '../../../src/store/embedded/embedded-postgres.ts'))};
    const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(shared)} });
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query('select pg_postmaster_start_time()::text || current_database() as server');
    await client.end();
    console.log(JSON.stringify(rows[0].server));
    await new Promise((resolve) => setTimeout(resolve, ${Math.floor(Math.random() * 500)}));
    ${end};`;
  let started = 0;
  async function startSome(): Promise<void> {
    while (started < starts) {
      const end = ends[started++ % ends.length] ?? '';
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program(end)], {
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: process.cwd(),
      });
      const [printed, said] = await Promise.all([text(child.stdout), text(child.stderr)]);
      if (!end.startsWith('throw')) expect(said).toBe('');
      expect(JSON.parse(printed)).toMatch(/refold$/);
    }
  }
  await Promise.all(Array.from({ length: 8 }, startSome));
  await until(() => !existsSync(join(shared, 'postmaster.pid')));
});

test.for<NodeJS.Signals>([
  'SIGKILL',
  'SIGTERM',
])('an embedded server stops after %s ends its owner, and starts again', async (signal) => {
  const owner = await startOwner();
  const dismissed = await startEmbeddedPostgres({ dataDir });
  await dismissed.stop();
  expect(await query(owner.url, 'select 1 as here')).toEqual([{ here: 1 }]);
  owner.process.kill(signal);
  await once(owner.process, 'close');
  await until(() => !isThere() && !hasProcess());
  const next = await startEmbeddedPostgres({ dataDir });
  expect(await query(next.url, 'select count(*)::int from kept')).toEqual([{ count: 0 }]);
  await next.stop();
});

test('an embedded server stops after SIGKILL ends the process that is starting it', async () => {
  const owner = spawnOwner();
  await until(isThere);
  owner.kill('SIGKILL');
  await once(owner, 'close');
  await until(() => !isThere() && !hasProcess());
});

test('an embedded server starts although another process now has the id of a server that has ended', async () => {
  writeFileSync(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n0\n1\n`);
  const server = await startEmbeddedPostgres({ dataDir });
  await server.stop();
});

test('an error says that the port is in use', async () => {
  const listener = createServer();
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  const address = listener.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await expect(startEmbeddedPostgres({ dataDir, port })).rejects.toMatchObject({
    code: 'PORT_IN_USE',
    fields: { port },
  });
  listener.close();
});
