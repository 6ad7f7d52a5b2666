import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { runCli, startCli } from '../support/cli.ts';
import { startOwnServer } from '../support/own-server.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { applicationFile, userFolder } from './application-file.ts';

let database: TestDatabase;
let db: Database;
let config: string;
let folder: string;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  folder = await userFolder();
  config = await applicationFile(`
    const openings = defineImport({
      name: 'openings',
      async *toAppends(lines) {
        for await (const { text } of lines) {
          const { id, owner } = JSON.parse(text);
          yield { family: account, streamId: id, events: [{ type: 'Opened', payload: { owner } }], idempotencyKey: id };
        }
      },
    });
    export default defineConfig({ events: [account], imports: [openings] });`);
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

async function fileOf(lines: readonly string[], name = 'openings.jsonl'): Promise<string> {
  const file = join(folder, name);
  const text = lines.join('\n');
  await writeFile(file, name.endsWith('.gz') ? gzipSync(text) : text);
  return file;
}

const importing = (file: string, name = 'openings') => ['import', name, file, '--config', config];
const environment = () => ({ env: { DATABASE_URL: database.url } });
const line = (id: string, owner: unknown = 'Ada') => JSON.stringify({ id, owner });

async function streams(): Promise<string[]> {
  const rows = await db.query<{ id: string }>({ text: 'select stream_id as id from refold.events order by position' });
  return rows.map(({ id }) => id);
}

test('an unknown import and a missing file are refused', async () => {
  const refusals = [
    [importing('x.jsonl', 'opening'), "The application has no import 'opening'. Did you mean 'openings'?"],
    [importing('nowhere.jsonl'), "There is no file 'nowhere.jsonl' to import."],
  ] as const;
  for (const [cliArguments, message] of refusals) {
    expect(await runCli(cliArguments, environment())).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `refold: ${message}\n`,
    });
  }
});

test.each([
  ['is not JSON', '{ "id": "c"', "Expected ',' or '}' after property value in JSON at position 11 (line 1 column 12)."],
  ['has an invalid payload', line('c', 7), /payload of account's 'Opened' is not valid: owner: .*\./],
])('the error names a line that %s; after a fix, the next import writes each line once', async (_, wrong, reason) => {
  const file = await fileOf([line('a'), line('b'), wrong, line('d')]);
  const failed = await runCli(importing(file), environment());
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  const message = failed.stderr.trim().split('\n').at(-1) ?? ''; // after the progress bar
  expect(message).toContain(`refold: Import 'openings' of '${file}' failed at`);
  expect(message).toContain('line 3: ');
  expect(message).toMatch(reason);
  expect(message).toMatch(/What was written stays; run the import again when the cause is fixed\.$/);
  expect(failed.stderr).not.toContain('    at ');
  expect(['a', 'b', 'd']).toEqual(expect.arrayContaining(await streams()));

  await fileOf([line('a'), line('b'), line('c'), line('d')]);
  expect(await runCli(importing(file), environment())).toMatchObject({ code: 0, stderr: '' });
  expect((await streams()).sort()).toEqual(['a', 'b', 'c', 'd']);
});

test('a truncated gzip file, and a file that is not gzip, are named as such', async () => {
  const whole = await fileOf([line('a'), line('b')], 'openings.jsonl.gz');
  await writeFile(whole, 'no gzip');
  const failed = await runCli(importing(whole), environment());
  expect(failed).toMatchObject({ code: 1 });
  expect(failed.stderr).toMatch(/failed before its first line: incorrect header check\. /);
  expect(await streams()).toEqual([]);
});

test('a second import of a file duplicates nothing, and says so', async () => {
  const file = await fileOf(
    ['a', 'b', 'c'].map((id) => line(id)),
    'openings.jsonl.gz',
  );
  const first = await runCli([...importing(file), '--json'], environment());
  const result = JSON.parse(first.stdout);
  expect(result).toMatchObject({ lines: 3, written: 3, skipped: 0, interrupted: false });
  expect(result.eventsPerSecond).toBe(result.written / result.seconds);
  const second = await runCli(importing(file), environment());
  expect(second.code).toBe(0);
  expect(second.stdout).toMatch(/^Done: 3 lines, 0 events written, 3 already there, in \d+\.\d s\.\n$/);
  expect(await streams()).toEqual(['a', 'b', 'c']);
});

test('Ctrl-C ends an import between two batches, also while it waits for a line, and stops the script around it', async () => {
  const pipe = join(folder, 'endless.jsonl');
  execFileSync('mkfifo', [pipe]);
  const command = startCli([...importing(pipe), '--json'], environment());
  const writer = createWriteStream(pipe);
  writer.on('error', () => {}); // its reader ends first
  const written = Array.from({ length: 3_000 }, (_, index) => line(`a${index}`));
  writer.write(`${written.join('\n')}\n`);
  await until(async () => (await streams()).length > 0);
  const { signal, stdout } = await command.end('SIGINT');
  writer.destroy();
  expect({ signal, ...JSON.parse(stdout) }).toMatchObject({ signal: 'SIGINT', interrupted: true });
  expect(await streams()).toEqual(written.slice(0, JSON.parse(stdout).written).map((text) => JSON.parse(text).id));
});

test('while commits wait for a standby that is away, an import says so, and Ctrl-C ends it', async () => {
  const server = await startOwnServer();
  onTestFinished(() => server.stop());
  const admin = createDatabase({ url: server.url, maxConnections: 1 });
  onTestFinished(() => admin.close());
  const file = await fileOf(['a', 'b'].map((id) => line(id)));
  const environmentHere = { env: { DATABASE_URL: server.url } };
  await admin.query({ text: `alter system set synchronous_standby_names = 'away'` });
  await admin.query({ text: 'select pg_reload_conf()' });
  const command = startCli(importing(file), environmentHere);
  await until(() => command.printed.stderr.includes('commits wait for a synchronous standby that is away'));
  expect(command.printed.stderr).toContain('refold: The import waits for the database, for 5m 0s at most.');
  expect(await command.end('SIGINT')).toMatchObject({ signal: 'SIGINT' });
  await admin.query({ text: 'alter system reset synchronous_standby_names' });
  await admin.query({ text: 'select pg_reload_conf()' });
  const { stdout } = await runCli(importing(file), environmentHere);
  // Whether the first import had already sent its events or not, each is there once.
  expect(stdout).toMatch(/^Done: 2 lines, /);
  expect(await admin.query({ text: 'select count(*)::int as events from refold.events' })).toEqual([{ events: 2 }]);
});

test('an inline version whose table is damaged is named and left out, and the import goes on', async () => {
  config = await applicationFile(`
    const owners = defineProjection({
      name: 'owners', version: 1, events: account, mode: 'inline',
      table: { id: t.text().primaryKey(), owner: t.text() },
      key: ({ streamId }) => streamId,
      evolve: { Opened: (_, { payload: { owner } }) => ({ owner }) },
    });
    const openings = defineImport({
      name: 'openings',
      async *toAppends(lines) {
        for await (const { text } of lines)
          yield { family: account, streamId: text, events: [{ type: 'Opened', payload: { owner: 'Ada' } }], idempotencyKey: text };
      },
    });
    export default defineConfig({ projections: [owners], imports: [openings] });`);
  const process = startCli(['start', '--config', config], { env: { ...environment().env, PORT: '0' } });
  await process.url();
  await until(
    async () => (await db.query({ text: `select from refold.inline_versions where status = 'live'` })).length === 1,
  );
  await process.end('SIGTERM');
  await db.query({ text: 'alter table read_models.owners_v1 rename column owner to keeper' });
  const { code, stderr } = await runCli(importing(await fileOf(['a', 'b'])), environment());
  expect(stderr).toContain(
    "'refold rebuild owners@1' rebuilds it. Until then, what is appended is left out of its rows.",
  );
  expect(code).toBe(0);
  expect(await streams()).toEqual(['a', 'b']);
});
