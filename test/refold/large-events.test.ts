/** Every place that gathers events or rows, over more of them than its process has memory for. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type CliProcess, fromBundle, runCli, startCli } from '../support/cli.ts';
import { effort } from '../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const heap = 512;
const letters = 32_768; // of 32 characters
// 1 MB each. One character beyond Latin-1 makes V8 keep two bytes for each character. On its turn, all of them need 640 MB; else the places are
// the same, and what they return.
let events: number;

const app = join(import.meta.dirname, 'large-events-app.ts');
let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  events = effort(320, 72);
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.superuserUrl });
  await client.connect();
  for (const [family, type] of [
    ['note', 'Written'],
    ['letter', 'Sent'],
  ])
    await insertEvents(String(family), String(type), 0);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** By the server itself, which takes a fraction of the time of appends. Texts that repeat themselves take little of the disk. */
async function insertEvents(family: string, type: string, after: number): Promise<void> {
  await client.query(`
    begin;
    select set_config('refold.appending', 'yes', true);
    insert into refold.streams (family, stream_id, version) values ('${family}', 'all', ${after + events})
    on conflict (family, stream_id) do update set version = excluded.version;
    insert into refold.events (family, stream_id, stream_position, type, payload)
    select '${family}', 'all', n + ${after}, '${type}',
      jsonb_build_object('id', 'n' || n, 'body', 'ж' || repeat(md5(n::text), ${letters}))
    from generate_series(1, ${events}) n;
    commit`);
}

const inSmallHeap = (more: Readonly<Record<string, string>> = {}) => ({
  env: {
    DATABASE_URL: database.url,
    PORT: '0',
    LOG_LEVEL: 'warn',
    NODE_OPTIONS: `${fromBundle().NODE_OPTIONS ?? ''} --max-old-space-size=${heap}`,
    ...more,
  },
});

// The bundle of the sources leaves out the fields of the admin API.
const withAdmin = { NODE_OPTIONS: `--max-old-space-size=${heap}` };

/** `refold …` */
async function run(...cliArguments: string[]) {
  const { code, signal, stdout, stderr } = await runCli([...cliArguments, '--config', app], inSmallHeap());
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  return stdout;
}

/** Runs the application, which maintains these parts, waits until the condition holds, and ends it. */
async function running(only: string, condition: (process: CliProcess) => Promise<unknown>, env = {}): Promise<void> {
  const process = startCli(['start', '--only', only, '--config', app], inSmallHeap(env));
  await process.url();
  const over = process.ended.then(({ code, signal, stderr, stdout }) => {
    throw new Error(`ended with ${code ?? signal}: ${stdout}${stderr}`);
  });
  over.catch(() => {});
  await Promise.race([condition(process), over]);
  const { code, stderr } = await process.end('SIGTERM');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

async function first(query: string): Promise<unknown> {
  const { rows } = await client.query({ text: query, rowMode: 'array' });
  return rows[0]?.[0];
}

const stateOf = (name: string) =>
  first(`select state || coalesce(': ' || held_reason, '') from refold.projections where name = '${name}'`);
const checkpointOf = (name: string) =>
  first(`select min(checkpoint)::int from refold.processors where name = '${name}'`);
const end = () => first('select max(position)::int from refold.events');
const areActive =
  (...names: readonly string[]) =>
  async () => {
    for (const name of names) await until(async () => (await stateOf(name)) === 'active');
  };
const rowsOf = (table: string) => first(`select count(*)::int from read_models.${table} where length(body) > 1000000`);

test('first builds with evolve, evolveSql and a reactor', async () => {
  await running('note@1,counted@1,reader', async () => {
    await areActive('note', 'counted')();
    await until(async () => (await first(`select checkpoint::int from refold.reactors`)) === (await end()));
  });
  expect([await rowsOf('note_v1'), await rowsOf('counted_v1')]).toEqual([events, events]);
});

test('a first build with evolveSql of upcast events', async () => {
  await running('upcast@1', areActive('upcast'));
  expect(await rowsOf('upcast_v1')).toBe(events);
});

test('events that fail: dead letters, which are listed and retried, and skipped ones', async () => {
  await running('stream@1,skipping@1', areActive('skipping'), { BROKEN: 'yes' });
  const { letters } = JSON.parse(await run('dead-letters', 'list', 'stream@1', '--json'));
  expect(letters).toHaveLength(events);
  await run('dead-letters', 'retry', 'stream@1', '--reason', 'fixed');
  expect(await first('select events::int from read_models.stream_v1')).toBe(events);
});

test('snapshots of a table, and rebuilds from them', async () => {
  await running('note@1', async () => {
    await run('snapshot', 'take', 'note@1', '--reason', 'test');
    await run('rebuild', 'note@1', '--from-snapshot', 'latest', '--reason', 'test');
  });
  expect(await rowsOf('note_v1_g2')).toBe(events);
});

test('verifications and comparisons', async () => {
  expect(await run('verify', 'note@1')).toContain(`equals the log at position ${2 * events}: ${events} rows compared`);
});

test('pages of events for operators', async () => {
  const page = JSON.parse(await run('events', 'list', '--from', '0', '--payload', '--limit', '1000', '--json'));
  expect(page.events.length).toBeGreaterThan(0);
  expect(page.later).not.toBeNull();
  const tail = await run('events', 'tail', 'note/all', '--payload', '--limit', '1000', '--json');
  expect(tail.split('\n').filter(Boolean)).toHaveLength(events);
});

test('a command that reads a long stream of them', async () => {
  await running('skipping@1', async (process) => {
    const body = await ask(process, 'mutation { writeNote(input: { id: "last" }) { position } }');
    expect(body).toMatchObject({ data: { writeNote: {} } });
  });
});

test('lists, histories and steps, which are refused', async () => {
  await running(
    'skipping@1',
    async (process) => {
      const stepper = '{ rowHistory(projection: "stream", key: "all", first: 1) { items { event { position } } } }';
      expect(codes(await ask(process, stepper, '/admin/graphql'))).toEqual(['ANSWER_TOO_LARGE']);
      const page = await ask(process, '{ events(first: 200) { items { payload } next } }', '/admin/graphql');
      expect(page).toMatchObject({ data: { events: { next: expect.any(String) } } });
      for (const query of [
        '{ streamEvents(streamId: "all", first: 1) { nodes { payload } } }',
        '{ notes(first: 300) { nodes { body } } }',
      ])
        expect(codes(await ask(process, query))).toEqual(['ANSWER_TOO_LARGE']);
      const rows = await ask(
        process,
        '{ rows(version: "note@1", first: 200) { items { row } next } }',
        '/admin/graphql',
      );
      expect(rows).toMatchObject({ data: { rows: { next: expect.any(String) } } });
    },
    withAdmin,
  );
});

test('feeds: all rows, and what has changed since a cursor', async () => {
  await running('note@1', async (process) => {
    const [cursor] = await messages(process, 'noteChanges(snapshot: false) { cursor }', /"cursor":"([^"]+)"/g, 1);
    await messages(process, 'noteChanges { changes { row { body } } }', /"body":"/g, events);
    await insertEvents('note', 'Written', events + 1);
    await until(async () => (await checkpointOf('note')) === (await end()));
    await messages(process, `noteChanges(since: "${cursor}") { changes { row { body } } }`, /"body":"/g, events);
  });
});

test('imports', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refold-large-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'notes.txt');
  const line = `ж${'0123456789abcdef'.repeat(letters * 2)}\n`;
  await writeFile(
    file,
    (function* () {
      for (let n = 0; n < events; n++) yield line;
    })(),
  );
  await run('import', 'notes', file);
  expect(await first(`select version::int from refold.streams where stream_id = 'imported'`)).toBe(events);
});

async function ask(process: CliProcess, query: string, path = '/graphql'): Promise<unknown> {
  const response = await fetch(`${await process.url()}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${'x'.repeat(40)}` },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

const codes = (answer: unknown) => {
  const { errors = [] } = answer as { errors?: readonly { extensions: { code: string } }[] };
  return errors.map(({ extensions }) => extensions.code);
};

/** What matches in the messages of a subscription, until so much does. */
async function messages(process: CliProcess, field: string, wanted: RegExp, count: number): Promise<string[]> {
  const url = `${await process.url()}/graphql?query=${encodeURIComponent(`subscription { ${field} }`)}`;
  const { body } = await fetch(url, { headers: { accept: 'text/event-stream' } });
  const found: string[] = [];
  let rest = '';
  for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    rest += chunk;
    if (rest.includes('"errors"')) throw new Error(rest.slice(0, 2000));
    for (const match of rest.matchAll(wanted)) found.push(match[1] ?? '');
    if (found.length >= count) return found;
    rest = rest.replaceAll(wanted, '').slice(-200);
  }
  throw new Error(`ended after ${found.length}`);
}
