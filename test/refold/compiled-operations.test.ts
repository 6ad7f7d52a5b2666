import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anonymous, type Refold } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { dailyEffort, effort } from '../support/effort.ts';
import { startOwnServer } from '../support/own-server.ts';
import { until } from '../support/until.ts';
import * as operationsSetting from './operations-setting.ts';
import {
  type Ask,
  answerTo,
  expectNaiveResponses,
  type OperationsSetting,
  plain,
  startOperations,
} from './operations-setting.ts';
import { ids } from './random-conditions.ts';

let setting: OperationsSetting;
let refold: Refold;
let executing: Refold;
let logged: string[];

beforeAll(async () => {
  setting = await startOperations();
  ({ refold, executing, logged } = setting);
});
afterAll(() => setting.stop());

const bothAnswers = (ask: Ask) => operationsSetting.bothAnswers(setting, ask);
const compiled = (of: Refold = refold) => operationsSetting.compiled(of);

/** 1,000 in CI, different ones each day. */
const operations = Number(process.env.RUNS ?? dailyEffort(1000, 60));
/** What differs here is only which database the statements are sent to. */
const operationsApart = Number(process.env.RUNS ?? effort(250, 30));

// A thousand operations may take minutes where the machine is busy.
test(
  'any operation has the response of a naive evaluation over the rows, by one statement and by the executor, for any viewer',
  {
    timeout: 1_800_000,
  },
  () => expectNaiveResponses(setting, operations),
);

// As above.
test('any operation has the same response from read models in another server than the log, by environment variables alone', {
  timeout: 1_800_000,
}, async () => {
  const server = await startOwnServer();
  const apart = await startOperations({ url: server.url });
  await expectNaiveResponses(apart, operationsApart);
  await apart.stop();
  await server.stop();
});

test('without compiled queries the executor answers, with the same response', async () => {
  const ask = plain('{ things(first: 2) { totalCount nodes { thingId amount } } }');
  const before = await compiled();
  const [one, executed] = await bothAnswers(ask);
  expect(executed).toEqual(one);
  expect([await compiled(), await compiled(executing)]).toEqual([before + 1, 0]);
});

test('pages follow each other by their cursors, in both directions', async () => {
  const all = `{ things(orderBy: [{ label: DESC }, { amount: ASC }], first: 50) { nodes { thingId } } }`;
  const [{ answer }] = await bothAnswers(plain(all));
  const before = await compiled();
  for (const [length, from, cursor, more] of [
    ['first', 'after', 'endCursor', 'hasNextPage'],
    ['last', 'before', 'startCursor', 'hasPreviousPage'],
  ] as const) {
    const pages: { thingId: string }[][] = [];
    let at: string | null = null;
    for (let last = false; !last; ) {
      const query: string = `query ($at: String) {
        things(orderBy: [{ label: DESC }, { amount: ASC }], ${length}: 7, ${from}: $at) {
          nodes { thingId } pageInfo { ${cursor} ${more} }
        }
      }`;
      const [page, executed] = await bothAnswers(plain(query, { variables: { at } }));
      expect(page).toEqual(executed);
      const { nodes, pageInfo } = page.answer.data.things;
      pages.push(nodes);
      at = pageInfo[cursor];
      last = !pageInfo[more];
    }
    expect((length === 'last' ? pages.reverse() : pages).flat()).toEqual(answer.data.things.nodes);
  }
  expect(await compiled()).toBe(before + 8);
});

test('concurrent lists have each their own response, for every viewer', async () => {
  const query = 'query ($n: Int!) { things(where: { count: { gte: $n } }, first: 9) { totalCount nodes { thingId } } }';
  const asksOf = (authorization: string) => ids.map((_, n) => plain(query, { variables: { n }, authorization }));
  const answers = await Promise.all(['north', 'south', 'nobody'].flatMap(asksOf).map(bothAnswers));
  for (const [one, executed] of answers) expect(one).toEqual(executed);
});

test('queries of this process use the same statement, as the viewer that it names', async () => {
  const query =
    'query ($n: Int) { things(first: $n) { totalCount nodes { thingId amount at json detail { price } } } }';
  const { answer } = await answerTo(refold, plain(query, { variables: { n: 30 } }));
  const before = await compiled();
  expect(await refold.graphql(query, { n: 30 })).toEqual(answer);
  const north = await answerTo(refold, plain('{ things { totalCount } }', { authorization: 'north' }));
  const viewer = { ...anonymous, id: 'north', tenant: 'north' };
  expect(await refold.graphql('{ things { totalCount } }', {}, viewer)).toEqual(north.answer);
  // Two of them in this process, one over HTTP.
  expect(await compiled()).toBe(before + 3);
  // An operation that can't be compiled is executed.
  expect((await refold.graphql('{ things(first: -1) { totalCount } }')).errors).toHaveLength(1);
});

test('a request that asks for the position gets the same data', async () => {
  const counts = 'all: totalCount some: totalCount(upTo: 3)';
  const ask = plain(
    `{ things(first: 2) { ${counts} nodes { thingId } } owner(ownerId: "ada") { things { ${counts} } } }`,
  );
  const [{ answer }] = await bothAnswers(ask);
  expect(answer.data).toMatchObject({ things: { all: ids.length, some: 3 }, owner: { things: { some: 3 } } });
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'refold-position': '1' },
    body: JSON.stringify({ query: ask.query }),
  });
  const { data, extensions } = (await response.json()) as { data: unknown; extensions: { position: string } };
  expect(data).toEqual(answer.data);
  expect(BigInt(extensions.position.split('.')[0] ?? 0)).toBeGreaterThan(0n);
});

test('a list behind a null relation has no rows, and page info like any other', async () => {
  const [{ cursor } = { cursor: '' }] = (await answerTo(refold, plain('{ things { edges { cursor } } }'))).answer.data
    .things.edges;
  const page = 'nodes { thingId } totalCount pageInfo { hasNextPage hasPreviousPage }';
  const ask = plain(
    `query ($at: String) { thing(thingId: "thing-3") {
      behind: namesakes(after: $at) { ${page} }
      before: namesakes(last: 2, before: $at) { ${page} }
    } }`,
    { variables: { at: cursor } },
  );
  const [one, executed] = await bothAnswers(ask);
  const empty = { nodes: [], totalCount: 0 };
  expect(one.answer.data.thing).toEqual({
    behind: { ...empty, pageInfo: { hasNextPage: false, hasPreviousPage: true } },
    before: { ...empty, pageInfo: { hasNextPage: true, hasPreviousPage: false } },
  });
  expect(executed).toEqual(one);
});

describe('the executor answers', () => {
  const siblings = (depth: number): string =>
    depth === 0 ? 'thingId' : `siblings(first: 50) { nodes { ${siblings(depth - 1)} } }`;
  const many = Array.from({ length: 120 }, (_, index) => `f${index}: owner { ownerId name rank id }`).join(' ');

  test.each<[string, Ask]>([
    ['a field of the application', plain('{ hello things { totalCount } }')],
    ['a computed field', plain('{ owner(ownerId: "ada") { shout } }')],
    ['introspection', plain('{ __type(name: "Thing") { name } }')],
    ['the metadata of versions', plain('{ _meta { projections { name } } }')],
    ['a row of any type', plain(`{ node(id: "${Buffer.from('[1,"owner","ada"]').toString('base64url')}") { id } }`)],
    ['a demanded position', plain('query @after(position: "1") { things { totalCount } }')],
    ['a possibly too large number of rows', plain(`{ things(first: 50) { nodes { ${siblings(2)} } } }`)],
    ['a very large selection', plain(`{ thing(thingId: "thing-1") { ${many} } }`)],
    ['an unreadable column', plain('{ thing(thingId: "thing-1") { secret } }')],
    ['a filter by such a column', plain('{ things(where: { secret: { eq: 1 } }) { totalCount } }')],
    ['such a column of related rows', plain('{ owner(ownerId: "ada") { things { nodes { secret } } } }')],
    ['a cursor of another list', plain('{ things(after: "x") { totalCount } }')],
    ['a count up to a variable', plain('query ($n: Int = 2) { things { totalCount(upTo: $n) } }')],
    ['a count up to zero', plain('{ things { totalCount(upTo: 0) } }')],
    [
      'a variable of the wrong type',
      plain('query ($n: Int) { things(first: $n) { totalCount } }', { variables: { n: 'x' } }),
    ],
    ['an unknown field', plain('{ nothing }')],
    ['a text that no table can hold', plain('{ thing(thingId: "\\u0000") { label } }')],
  ])('%s', async (_, ask) => {
    const before = await compiled();
    const [one, executed] = await bothAnswers({ ...ask, accept: 'application/graphql-response+json' });
    expect(one).toEqual(executed);
    expect([await compiled(), logged.splice(0)]).toEqual([before, []]);
  });

  test('if a statement fails, as with an altered table, and the log says so', async () => {
    const ask = plain('{ thing(thingId: "thing-1") { label } }');
    const right = await answerTo(refold, ask);
    const before = await compiled();
    const db = createDatabase({ url: setting.database.url });
    const table = 'read_models.thing_v1';
    await db.query({ text: `alter table ${table} rename column label to lable` });
    const [one] = await bothAnswers(ask);
    await db.query({ text: `alter table ${table} rename column lable to label` });
    await db.close();
    expect(one.answer.errors).toMatchObject([{ extensions: { code: 'PROJECTION_NOT_READY' } }]);
    expect(logged.splice(0).join()).toContain('compiled query failed; fell back to the executor');
    expect(await compiled()).toBe(before);
    // If the process has looked at the table meanwhile, it does not read it until it looks again.
    await until(async () => isDeepStrictEqual(await answerTo(refold, ask), right) && (await compiled()) > before);
  });
});
