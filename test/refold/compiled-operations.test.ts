import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { declaredSchema } from '../../src/cli/setup/declared-schema.ts';
import { underEnvironment } from '../../src/config/environment.ts';
import { anonymous, createRefold, defineConfig, extendSchema, type Refold } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { effort } from '../support/effort.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster } from '../support/postgres-cluster.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { type NaiveApi, naiveApi, withNames } from './naive-answers.ts';
import { maxPageSize } from './naive-groups.ts';
import { rowOf } from './naive-values.ts';
import { amounts, bigs, days, ids, labels, owners, seals, times } from './random-conditions.ts';
import { cursorAsked, cursorsIn, type RandomOperation, randomOperation } from './random-operations.ts';
import { families, ownerV1, placeV1, thingV1 } from './things.ts';

let database: TestDatabase;
let refold: Refold;
/** Another gateway of the same database, without compiled queries: the executor answers everything. */
let executing: Refold;
/** An application of its own with the same events. Its read models are in another server than its log, by environment variables alone. */
let apart: Refold;
let apartLog: TestDatabase;
let server: PostgresCluster;
let naive: NaiveApi;
/** What the log says of compiled queries. A busy machine makes it say other things. */
const logged: string[] = [];
const noteFallback = (line: string) => void (line.includes('compiled query') && logged.push(line));
const projections: readonly Projection[] = [thingV1, ownerV1, placeV1];

const extension = extendSchema(({ builder, rowField }) => {
  builder.queryField('hello', (t) => t.string({ resolve: () => 'you' }));
  rowField('owner', 'shout', ['name'], (t) => t.string({ resolve: (row) => String(row.name).toUpperCase() }));
});

beforeAll(async () => {
  database = await createTestDatabase();
  apartLog = await createTestDatabase();
  server = await startOwnServer();
  const configOf = (compiledQueries: boolean, url = database.url) =>
    defineConfig({
      projections: [thingV1, ownerV1, placeV1],
      database: { url },
      schema: extension,
      auth: ({ header }) => {
        const [tenant, role] = (header('authorization') ?? '').split(' ');
        return {
          id: tenant ? 'v' : null,
          tenant: tenant || null,
          roles: role ? [role] : [],
          claims: {},
          expiresAt: null,
        };
      },
      gateway: {
        port: 0,
        compiledQueries,
        positionTimeout: 300_000,
        statementTimeout: 300_000,
        maxPageSize,
        maxAliases: 1000,
        maxTokens: 20_000,
        maxDepth: 30,
        maxCost: 1e9,
      },
    });
  const config = configOf(true);
  const logger = pino({ level: 'warn' }, { write: noteFallback });
  refold = await createRefold(config, { logger });
  const readStores = JSON.stringify({ other: { url: server.url } });
  const elsewhere = { REFOLD_READ_STORES: readStores, REFOLD_STORE: 'other' };
  apart = await createRefold(underEnvironment(configOf(true, apartLog.url), elsewhere), { logger });
  let last = 0n;
  const set = async (
    family: (typeof families)[keyof typeof families],
    streamId: string,
    payload: Record<string, unknown>,
  ) => {
    const event = { type: 'Set', payload } as const;
    last = (await refold.log.append({ family, streamId, events: [event] })).position;
    await apart.log.append({ family, streamId, events: [event] });
  };
  const rows = new Map<Projection, readonly Row[]>([
    [ownerV1, owners.slice(0, 3).map((ownerId, rank) => ({ ownerId, name: `${ownerId}!`, rank }))],
    [placeV1, days.map((day, lane) => ({ day, lane, name: `${day}/${lane}` }))],
    [thingV1, ids.map((thingId, index) => rowOf(thingV1, { thingId, ...thing(index) }))],
  ]);
  for (const { ownerId, ...owner } of rows.get(ownerV1) ?? []) await set(families.owner, String(ownerId), owner);
  for (const place of rows.get(placeV1) ?? []) await set(families.place, String(place.day), place);
  for (const [index, id] of ids.entries()) await set(families.thing, id, thing(index));
  naive = naiveApi(declaredSchema(config), projections, rows);
  for (const one of [refold, apart])
    await until(async () => (await one.status()).every(({ position }) => position >= last));
  expect((await apart.status()).map(({ store }) => store)).toEqual(['other', 'other', 'other']);
  executing = await createRefold(configOf(false), { role: 'gateway', logger });
});

afterAll(async () => {
  await Promise.all([refold.stop(), executing.stop(), apart.stop()]);
  await Promise.all([database.drop(), apartLog.drop()]);
  await server.stop();
});

const pick = <T>(of: readonly T[], index: number) => of[index % of.length] as T;

function thing(index: number) {
  const at = pick(times, index);
  const text = pick(['plain', '"quoted" \\ / \b\f\n\r\t\u0001\u007f\u2028', 'äß👍🏽', ''], index);
  return {
    ownerId: pick(owners, index),
    underId: index % 3 === 0 ? null : index % 11 === 5 ? 'gone' : pick(ids, index * 7 + 1),
    label: index % 4 === 3 ? null : pick(labels, index),
    token: `00000000-0000-4000-8000-0000000000${String(index).padStart(2, '0')}`,
    seal: index % 6 === 5 ? null : pick(seals, index),
    count: index % 6,
    big: pick(bigs, index),
    amount: pick(amounts, index),
    flag: index % 2 === 0,
    day: pick(days, index),
    at: index % 5 === 4 ? null : at,
    status: pick(['Opened', 'Closed'], index),
    secret: index,
    json: pick([{ b: [1, 'ä"', null, { c: 1e-7 }], a: 1e21, '10': true }, 'text "x"', 0, [], null, -1.5], index),
    detail: {
      name: text,
      price: index % 3 === 0 ? null : '7.5',
      count: pick(bigs, index + 1),
      proof: index % 3 === 1 ? null : pick(seals, index + 2),
      at,
      more: index % 2 === 0 ? null : { flag: true, day: index % 3 === 0 ? null : '2026-01-31', json: { deep: [text] } },
    },
    items: index % 7 === 0 ? null : Array.from({ length: index % 3 }, () => ({ at, tags: [text, 'b'], price: '1.5' })),
    prices: ['1.5', '20', '-0.01'].slice(0, index % 4),
    grid: [[1, null], [], [index]],
  };
}

type Ask = RandomOperation & { readonly authorization?: string; readonly accept?: string };

async function answerTo({ url }: Refold, { query, variables, authorization, accept }: Ask) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(authorization === undefined ? {} : { authorization }),
      ...(accept === undefined ? {} : { accept }),
    },
    body: JSON.stringify({ query, variables }),
  });
  const { status, headers } = response;
  const text = await response.text();
  return { status, type: headers.get('content-type'), answer: JSON.parse(text) };
}

const bothAnswers = (ask: Ask) => Promise.all([answerTo(refold, ask), answerTo(executing, ask)]);

async function compiled({ url } = refold): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^refold_graphql_compiled_total (\d+)$/m.exec(text)?.[1]);
}

const plain = (query: string, more: Partial<Ask> = {}): Ask => ({ query, variables: {}, ...more });

/** What the access rules let a viewer see. */
function sees(authorization: string | undefined) {
  const [tenant] = (authorization ?? '').split(' ');
  return (projection: Projection, row: Row) => {
    if (!tenant || projection === placeV1) return true;
    if (projection === ownerV1) return Number(row.rank) >= 2;
    return row.label === tenant || row.count === 1 || row.count === 2;
  };
}

const cursors = new Map<string, readonly { cursor: string; node: { thingId: string } }[]>();

/** The operation with real cursors from the API, requested by a separate query. */
async function withCursors({ query, variables }: RandomOperation): Promise<RandomOperation> {
  let text = query;
  for (const asked of cursorsIn(query)) {
    const { order, index } = cursorAsked(asked);
    const all = plain(`{ things(orderBy: ${order}, first: 50) { edges { cursor node { thingId } } } }`);
    const edges = cursors.get(order) ?? (await answerTo(executing, all)).answer.data.things.edges;
    cursors.set(order, edges);
    const cursor = edges.find(({ node }: { node: { thingId: string } }) => node.thingId === ids[index]).cursor;
    text = text.replaceAll(JSON.stringify(asked), JSON.stringify(cursor));
  }
  return { query: text, variables };
}

// Several operations at once: the database answers some while this process creates others.
const atOnce = 10;
/** 1,000 in CI, different ones each day. */
const operations = Number(process.env.RUNS ?? effort(1000, 60));

// A thousand operations may take minutes where the machine is busy.
test('any operation has the response of a naive evaluation over the rows, by one statement, by the executor and from another server, for any viewer', {
  timeout: 1_800_000,
}, async () => {
  let right = 0;
  const before = await compiled();
  const viewers = fc.constantFrom(undefined, 'north', 'south auditor', 'nobody');
  const equal = fc.asyncProperty(randomOperation, viewers, async (operation, authorization) => {
    const asked = await withCursors(operation);
    const ask = { ...asked, ...(authorization ? { authorization } : {}) };
    const [one, executed] = await bothAnswers(ask);
    expect(await answerTo(apart, ask)).toEqual(one);
    if (!executed.answer.errors) right++;
    expect([one, logged.splice(0)]).toEqual([executed, []]);
    const { data, errors } = await naive.answer(operation, sees(authorization));
    const told = {
      data: withNames(executed.answer.data ?? null, projections),
      refused: executed.answer.errors !== undefined,
    };
    expect(told).toEqual({ data: JSON.parse(JSON.stringify(data)), refused: errors !== undefined });
  });
  const seeds = Array.from({ length: atOnce }, (_, index) => seed * atOnce + index);
  const numRuns = Math.ceil(operations / atOnce);
  const ended = await Promise.allSettled(seeds.map((one) => fc.assert(equal, { numRuns, seed: one })));
  for (const run of ended) if (run.status === 'rejected') throw run.reason;
  // All responses without errors came from one statement.
  expect([await compiled(), await compiled(executing), await compiled(apart)]).toEqual([before + right, 0, right]);
  expect(right).toBeGreaterThan(0);
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
    const db = createDatabase({ url: database.url });
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
