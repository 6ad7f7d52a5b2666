import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, defineProjection, many, type Refold, t } from '../../src/index.ts';
import { untilCaughtUp } from '../support/patient.ts';
import { account } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

/** Its SQL writes numbers into JSON that JavaScript can't hold. */
const measuredV1 = defineProjection({
  name: 'measured',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), owner: t.text().index(), found: t.json(), every: t.list(t.json()) },
  relations: { others: many('measured', { from: 'owner', to: 'owner' }) },
  evolveSql: {
    events: ['Opened'],
    rows: `
      select
        stream_id as account_id,
        max(payload ->> 'owner') as owner,
        '{"id": 12345678901234567890, "huge": 1e400, "tiny": 0.1234567890123456789012, "text": "12345678901234567890", "n": 1.5}'::jsonb as found,
        '[12345678901234567890, 7]'::jsonb as every
      from batch
      group by 1`,
    merge: { owner: 'last', found: 'last', every: 'last' },
  },
});

const token = randomBytes(32).toString('base64url');
let database: TestDatabase;
let compiling: Refold;
let executing: Refold;
beforeAll(async () => {
  database = await createTestDatabase();
  const start = (compiledQueries: boolean) =>
    createRefold(
      defineConfig({
        projections: [measuredV1],
        database: { url: database.url },
        gateway: { port: 0, compiledQueries, admin: { tokens: [{ name: 'ann', token, rights: ['data'] }] } },
      }),
    );
  compiling = await start(true);
  executing = await start(false);
  for (const streamId of ['a', 'b'])
    await compiling.log.append({ family: account, streamId, events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await untilCaughtUp(compiling);
});
afterAll(async () => {
  await executing.stop();
  await compiling.stop();
  await database.drop();
});

/** The bytes of the answer: `JSON.parse` would lose what this is about. */
async function answerOf({ url }: Refold, query: string, accept = 'application/json'): Promise<string> {
  const headers = { 'content-type': 'application/json', accept };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  if (accept === 'application/json') return response.text();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"found"')) break;
  }
  return text.split('\n').find((line) => line.startsWith('data: {')) ?? '';
}

const found = `"found":{"n":1.5,"id":12345678901234567890,"huge":1${'0'.repeat(400)},"text":"12345678901234567890","tiny":0.1234567890123456789012}`;

test('numbers in JSON that SQL writes keep all digits, compiled and executed', async () => {
  for (const query of [
    '{ measured(accountId: "a") { found every } }',
    '{ measureds { nodes { found every } } }',
    '{ measured(accountId: "a") { others { nodes { found every } } } }',
  ]) {
    const answer = await answerOf(compiling, query);
    expect(answer).toContain(found);
    expect(answer).toContain('"every":[12345678901234567890,7]');
    expect(await answerOf(executing, query)).toBe(answer);
  }
});

test('messages of subscriptions keep them, too', async () => {
  for (const query of [
    'subscription { measured(accountId: "a") { found } }',
    'subscription { measureds { snapshot { found } } }',
  ])
    for (const refold of [compiling, executing])
      expect(await answerOf(refold, query, 'text/event-stream')).toContain(found);
});

test('the rows that operators see keep them, too', async () => {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const body = JSON.stringify({ query: '{ rows(version: "measured@1") { items { row } } }' });
  const response = await fetch(`${executing.url}/admin/graphql`, { method: 'POST', headers, body });
  expect(await response.text()).toContain(found);
});
