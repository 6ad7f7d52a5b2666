import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRefold,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  type Refold,
  t,
} from '../../src/index.ts';
import { checkStoredDeclarations } from '../../src/runtime/activation/check-declarations.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const comment = defineEvents('comment', { Written: z.object({ text: z.string() }) });
const commentV1 = defineProjection({
  name: 'comment',
  version: 1,
  events: comment,
  table: { commentId: t.text().primaryKey(), text: t.text().index({ search: true }) },
  key: ({ streamId }) => streamId,
  evolve: { Written: (_, { payload }) => payload },
});
const write = defineCommand({
  name: 'writeComment',
  events: comment,
  input: z.object({ id: z.string(), text: z.string() }),
  stream: ({ id }) => id,
  decide: ({ text }) => ({ type: 'Written', payload: { text } }),
});

let database: TestDatabase;
let db: Database;
let refold: Refold;
let config: ReturnType<typeof defineConfig>;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  config = defineConfig({
    database: { url: database.url },
    projections: [commentV1],
    commands: [write],
    gateway: { port: 0 },
  });
  refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
});
afterAll(async () => {
  await refold.stop();
  await db.close();
  await database.drop();
});

const mutation = `mutation ($input: WriteCommentInput!) {
  writeComment(input: $input) { query { comment(commentId: "long") { text } } }
}`;

test('a text of 200,000 characters is written to a searched column, is in the payload of its command, and is found by a part of it', async () => {
  // No compression makes it fit into an index entry.
  const words = Array.from({ length: 40_000 }, (_, at) => ((at * 7919) % 60_000).toString(36).padStart(4, '-'));
  const text = words.join(' ').padEnd(200_000, '.');
  expect(text.length).toBe(200_000);
  const written = await refold.graphql(mutation, { input: { id: 'long', text } });
  expect(written).toEqual({ data: { writeComment: { query: { comment: { text } } } } });
  const found = (where: object) =>
    refold.graphql('query ($where: CommentFilter) { comments(where: $where) { nodes { commentId } } }', { where });
  const only = { data: { comments: { nodes: [{ commentId: 'long' }] } } };
  const part = words[39_000] ?? '';
  for (const operators of [{ contains: part }, { eq: text }, { startsWith: text.slice(0, 3000) }, { in: [text] }])
    expect(await found({ text: operators })).toEqual(only);
  expect(await found({ text: { eq: `${text}!` } })).toEqual({ data: { comments: { nodes: [] } } });
});

test('cursors hold the first 256 characters of a long text, and pages by them show each row once', async () => {
  const start = `${'ä'.repeat(255)}😀`;
  for (const [id, end] of ['c', 'a', 'd', 'b'].entries())
    await refold.graphql(mutation, { input: { id: `page-${id}`, text: `${start}${end.repeat(3000)}` } });
  const ids: string[] = [];
  let after: string | null = null;
  for (let page = 0; page < 4; page++) {
    const { data } = await refold.graphql(
      `query ($after: String, $start: String!) {
        comments(where: { text: { startsWith: $start } }, orderBy: [{ text: ASC }], first: 1, after: $after) {
          edges { cursor node { commentId } }
        }
      }`,
      { after, start },
    );
    const [edge] = (data as { comments: { edges: { cursor: string; node: { commentId: string } }[] } }).comments.edges;
    ids.push(edge?.node.commentId ?? '');
    after = edge?.cursor ?? null;
    expect(JSON.parse(Buffer.from(String(after), 'base64url').toString())[1]).toBe(start);
  }
  // With equal beginnings, the key decides.
  expect(ids).toEqual(['page-0', 'page-1', 'page-2', 'page-3']);
});

test('a table with the index of an earlier release is named, and a rebuild replaces the index', async () => {
  await db.query({ text: 'drop index read_models.comment_v1_text__left' });
  await db.query({ text: 'create index comment_v1_text on read_models.comment_v1 (left(text, 8), comment_id)' });
  const message =
    "comment@1: its table lacks the index of 'text', so reads that need it scan the table. And its index comment_v1_text of an earlier release refuses texts of more than about 2,700 bytes. 'refold rebuild comment@1' rebuilds it.";
  expect(await checkStoredDeclarations(db, config)).toContainEqual({ kind: 'note', message });
  await requestRebuild(db, commentV1, 'read_models', { actor: 'ann', reason: 'test' });
  await until(async () => (await checkStoredDeclarations(db, config)).length === 0);
});
