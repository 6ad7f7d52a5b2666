/** An answer with more bytes than `gateway.maxAnswerSize` is refused by its code, whatever it reads. What is read at the same time is not. */
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createRefold, defineConfig, defineEvents, defineProjection, many, type Refold, t } from '../../src/index.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const note = defineEvents('note', { Written: z.object({ author: z.string(), body: z.string() }) });

const noteV1 = defineProjection({
  name: 'note',
  version: 1,
  events: note,
  history: true,
  table: { noteId: t.text().primaryKey(), author: t.text().index(), body: t.text() },
  key: ({ streamId }) => streamId,
  evolve: { Written: (_, { payload: { author, body } }) => ({ author, body }) },
  relations: { others: many('note', { from: 'author', to: 'author' }) },
});

const length = 20_000;
const maxAnswerSize = 5 * length; // holds three rows, and no ten
const rowsInAll = 10 + 1 + 150;
const ids = Array.from({ length: 10 }, (_, n) => `n${n}`);

let database: TestDatabase;
let gateways: readonly Refold[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  const db = createDatabase({ url: database.url });
  const log = createEventLog(db, [note]);
  const body = (n: number) => String(n).padEnd(length, '.');
  for (const [n, id] of ids.entries())
    await log.append({
      family: note,
      streamId: id,
      events: [{ type: 'Written', payload: { author: 'ada', body: body(n) } }],
    });
  for (let n = 0; n < 10; n++)
    await log.append({
      family: note,
      streamId: 'edited',
      events: [{ type: 'Written', payload: { author: 'bob', body: body(n) } }],
    });
  // Rows can be grouped by columns with an index, which holds texts of a thousand bytes.
  await log.appendInOrder(
    Array.from({ length: 150 }, (_, n) => ({
      family: note,
      streamId: `small${n}`,
      events: [{ type: 'Written' as const, payload: { author: String(n).padEnd(1000, '.'), body: '' } }],
    })),
  );
  await db.close();
  const start = (compiledQueries: boolean) =>
    createRefold(
      defineConfig({
        projections: [noteV1],
        database: { url: database.url },
        gateway: { port: 0, compiledQueries, maxAnswerSize },
      }),
      { logger: pino({ level: 'silent' }) },
    );
  gateways = [await start(true), await start(false)];
  for (const gateway of gateways)
    await until(async () => (await ask(gateway, '{ notes { totalCount } }')).data?.notes.totalCount === rowsInAll);
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await database.drop();
});

interface Answer {
  readonly data?: Record<string, never> & { notes: { totalCount: number; nodes: { id: string }[] } };
  readonly errors?: readonly { message: string; extensions: { code: string } }[];
}

async function ask(gateway: Refold, query: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${gateway.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return (await response.json()) as Answer;
}

const codesOf = ({ errors = [] }: Answer) => [...new Set(errors.map(({ extensions }) => extensions.code))];
const ofAda = 'where: { author: { eq: "ada" } }';

const large: Readonly<Record<string, string>> = {
  'a list': `{ notes(${ofAda}) { nodes { body } } }`,
  'a connection': `{ notes(${ofAda}) { totalCount edges { cursor node { body } } pageInfo { endCursor } } }`,
  'the end of a list': `{ notes(${ofAda}, last: 10) { nodes { body } } }`,
  'lists within a list': `{ notes(${ofAda}, first: 3) { nodes { noteId others(first: 10) { nodes { body } } } } }`,
  'several lists': `{ ${ids.map((id) => `${id}: notes(where: { noteId: { eq: "${id}" } }) { nodes { body } }`).join(' ')} }`,
  'several rows': `{ ${ids.map((id) => `${id}: note(noteId: "${id}") { body }`).join(' ')} }`,
  groups: '{ notesGrouped(by: [author]) { key { author } count } }',
};

test('in lists, connections, relations, groups and rows, compiled and executed', async () => {
  for (const gateway of gateways) {
    for (const [what, query] of Object.entries(large)) {
      const answer = await ask(gateway, query);
      expect([what, codesOf(answer)]).toEqual([what, ['ANSWER_TOO_LARGE']]);
      expect(answer.errors?.[0]?.message).toContain(`larger than ${maxAnswerSize} bytes`);
      // The connection was replaced, and smaller answers are given.
      const { data } = await ask(gateway, `{ notes(${ofAda}, first: 3) { nodes { body } } }`);
      expect([what, data?.notes.nodes.length]).toEqual([what, 3]);
    }
  }
});

test('in nodes by their ids, and in the history of a row', async () => {
  for (const gateway of gateways) {
    const { data } = await ask(gateway, `{ notes(${ofAda}) { nodes { id } } }`);
    const given = JSON.stringify(data?.notes.nodes.map(({ id }) => id));
    const nodes = (first: string) => `{ nodes(ids: ${first}) { ... on Note { body } } }`;
    expect(codesOf(await ask(gateway, nodes(given)))).toEqual(['ANSWER_TOO_LARGE']);
    expect(codesOf(await ask(gateway, '{ noteEvents(noteId: "edited", first: 1) { nodes { payload } } }'))).toEqual([
      'ANSWER_TOO_LARGE',
    ]);
    expect(codesOf(await ask(gateway, '{ noteEvents(noteId: "n1", first: 1) { nodes { payload } } }'))).toEqual([]);
  }
});

test('not because of what others read with the same statement', async () => {
  for (const gateway of gateways) {
    const rows = ids.map((id) => ask(gateway, `{ note(noteId: "${id}") { body } }`));
    const lists = ids.map((id) => ask(gateway, `{ notes(where: { noteId: { eq: "${id}" } }) { nodes { body } } }`));
    for (const answer of await Promise.all([...rows, ...lists])) expect(codesOf(answer)).toEqual([]);
  }
});

/** The first messages of a subscription: until an error, or until they name so many rows. */
async function follow(gateway: Refold, field: string, rows: number): Promise<string> {
  const url = `${gateway.url}/graphql?query=${encodeURIComponent(`subscription { ${field} }`)}`;
  const { body } = await fetch(url, { headers: { accept: 'text/event-stream' } });
  let text = '';
  for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes('"errors"') && text.includes('ANSWER_TOO_LARGE')) return 'ANSWER_TOO_LARGE';
    if (text.split('"body":').length > rows) return 'all';
  }
  return 'ended';
}

test('in a live list, which ends; others of the version go on, and a feed gives all rows in smaller messages', async () => {
  const [gateway] = gateways;
  if (!gateway) throw new Error('not started');
  const found = await Promise.all([
    follow(gateway, `notes(${ofAda}, first: 10) { snapshot { body } }`, 10),
    follow(gateway, `notes(${ofAda}, first: 2) { snapshot { body } }`, 2),
    follow(gateway, 'noteChanges { changes { row { body } } }', rowsInAll),
    ...ids.map((id) => follow(gateway, `note(noteId: "${id}") { body }`, 1)),
  ]);
  expect(found).toEqual(['ANSWER_TOO_LARGE', 'all', 'all', ...ids.map(() => 'all')]);
});
