import fc from 'fast-check';
import { pino } from 'pino';
import { expect } from 'vitest';
import { declaredSchema } from '../../src/cli/setup/declared-schema.ts';
import { underEnvironment } from '../../src/config/environment.ts';
import type { ReadStoreOptions } from '../../src/config/read-store-options.ts';
import { createRefold, defineConfig, extendSchema, type Refold } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { seed } from '../support/seed.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { type NaiveApi, naiveApi, withNames } from './naive-answers.ts';
import { maxPageSize } from './naive-groups.ts';
import { rowOf } from './naive-values.ts';
import { amounts, bigs, days, ids, labels, owners, seals, times } from './random-conditions.ts';
import {
  cursorAsked,
  cursorsIn,
  type RandomOperation,
  randomOperation,
  unrelatedOperation,
} from './random-operations.ts';
import { families, ownerV1, placeV1, thingV1 } from './things.ts';

/** Two gateways over the same rows, and a naive evaluation of them. */
export interface OperationsSetting {
  readonly database: TestDatabase;
  readonly refold: Refold;
  /** Another gateway, without compiled queries: the executor answers everything. */
  readonly executing: Refold;
  readonly declared: readonly Projection[];
  readonly naive: NaiveApi;
  /** What the log says of compiled queries. A busy machine makes it say other things. */
  readonly logged: string[];
  /** The number of operations that were not compiled, because an argument is refused: that is up to the executor, which may not reach it. */
  readonly refused: { readonly count: number };
  stop(): Promise<void>;
}

const extension = extendSchema(({ builder, rowField }) => {
  builder.queryField('hello', (t) => t.string({ resolve: () => 'you' }));
  rowField('owner', 'shout', ['name'], (t) => t.string({ resolve: (row) => String(row.name).toUpperCase() }));
});

/**
 * @param store where the read models are, by environment variables alone. @default with the log
 * @param declared variants of the read models in `things.ts`
 */
export async function startOperations(
  store?: ReadStoreOptions,
  declared: readonly Projection[] = [thingV1, ownerV1, placeV1],
): Promise<OperationsSetting> {
  const logged: string[] = [];
  const refused = { count: 0 };
  const noteFallback = (line: string) => {
    if (line.includes('compiled query')) logged.push(line);
    if (line.includes('query not compiled')) refused.count++;
  };
  const elsewhere = store ? { REFOLD_READ_STORES: JSON.stringify({ other: store }), REFOLD_STORE: 'other' } : {};
  const database = await createTestDatabase();
  const configOf = (compiledQueries: boolean) =>
    defineConfig({
      projections: declared,
      database: { url: database.url },
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
  const config = underEnvironment(configOf(true), elsewhere);
  const logger = pino({ level: 'debug' }, { write: noteFallback });
  const refold = await createRefold(config, { logger });
  let last = 0n;
  const set = async (
    family: (typeof families)[keyof typeof families],
    streamId: string,
    payload: Record<string, unknown>,
  ) => {
    const event = { type: 'Set', payload } as const;
    last = (await refold.log.append({ family, streamId, events: [event] })).position;
  };
  const named = (name: string) => declared.find((projection) => projection.name === name) ?? expect.unreachable();
  const [owner, place] = [named('owner'), named('place')];
  const rows = new Map<Projection, readonly Row[]>([
    [owner, owners.slice(0, 3).map((ownerId, rank) => ({ ownerId, name: `${ownerId}!`, rank }))],
    [place, days.map((day, lane) => ({ day, lane, name: `${day}/${lane}` }))],
    [named('thing'), ids.map((thingId, index) => rowOf(thingV1, { thingId, ...thing(index) }))],
  ]);
  for (const { ownerId, ...rest } of rows.get(owner) ?? []) await set(families.owner, String(ownerId), rest);
  for (const row of rows.get(place) ?? []) await set(families.place, String(row.day), row);
  for (const [index, id] of ids.entries()) await set(families.thing, id, thing(index));
  const naive = naiveApi(declaredSchema(config), declared, rows);
  await until(async () => (await refold.status()).every(({ position }) => position >= last));
  if (store) expect((await refold.status()).map((version) => version.store)).toEqual(['other', 'other', 'other']);
  const executing = await createRefold(underEnvironment(configOf(false), elsewhere), { role: 'gateway', logger });
  return {
    ...{ database, refold, executing, declared, naive, logged, refused },
    async stop() {
      await Promise.all([refold.stop(), executing.stop()]);
      await database.drop();
    },
  };
}

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

export type Ask = RandomOperation & { readonly authorization?: string; readonly accept?: string };

export async function answerTo({ url }: Refold, { query, variables, authorization, accept }: Ask) {
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

export const bothAnswers = ({ refold, executing }: OperationsSetting, ask: Ask) =>
  Promise.all([answerTo(refold, ask), answerTo(executing, ask)]);

/** How many operations a gateway has answered by one statement. */
export async function compiled({ url }: Refold): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^refold_graphql_compiled_total (\d+)$/m.exec(text)?.[1]);
}

export const plain = (query: string, more: Partial<Ask> = {}): Ask => ({ query, variables: {}, ...more });

/** What the access rules let a viewer see. */
function sees(authorization: string | undefined) {
  const [tenant] = (authorization ?? '').split(' ');
  return (projection: Projection, row: Row) => {
    if (!tenant || projection.name === 'place') return true;
    if (projection.name === 'owner') return Number(row.rank) >= 2;
    return row.label === tenant || row.count === 1 || row.count === 2;
  };
}

type Cursors = Map<string, readonly { cursor: string; node: { thingId: string } }[]>;

/** The operation with real cursors from the API, requested by a separate query. */
async function withCursors(
  executing: Refold,
  cursors: Cursors,
  { query, variables }: RandomOperation,
): Promise<RandomOperation> {
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

const viewers = fc.constantFrom(undefined, 'north', 'south auditor', 'nobody');

/** Expects that random operations have the response of the naive evaluation, by one statement and by the executor, for any viewer. */
export async function expectNaiveResponses(setting: OperationsSetting, operations: number): Promise<void> {
  const { refold, executing, refused } = setting;
  const cursors: Cursors = new Map();
  let asks = 0;
  const before = (await compiled(refold)) + refused.count;
  const equal = fc.asyncProperty(randomOperation, viewers, async (operation, authorization) => {
    await expectNaive(setting, cursors, operation, authorization);
    asks++;
  });
  await assertAtOnce(equal, operations);
  // Every other response came from one statement.
  expect([(await compiled(refold)) + refused.count, await compiled(executing)]).toEqual([before + asks, 0]);
  expect(refused.count).toBeLessThan(asks / 2);
}

/**
 * The same for read models that a Citus cluster distributes. Their schema has no relations: operations that follow some are refused.
 *
 * @returns how many were answered and refused
 */
export async function expectNaiveResponsesOfRows(setting: OperationsSetting, operations: number) {
  const cursors: Cursors = new Map();
  const counts = { answered: 0, refused: 0 };
  const some = fc.oneof({ weight: 4, arbitrary: unrelatedOperation }, randomOperation);
  const equal = fc.asyncProperty(some, viewers, async (operation, authorization) => {
    if (setting.naive.has(operation)) {
      await expectNaive(setting, cursors, operation, authorization);
      counts.answered++;
      return;
    }
    for (const { answer } of await bothAnswers(setting, operation)) {
      expect(answer.data).toBeUndefined();
      for (const { message, extensions } of answer.errors) {
        expect(extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');
        expect(message).toMatch(/^(Cannot query field|Field) "\w+" /);
      }
    }
    counts.refused++;
  });
  await assertAtOnce(equal, operations);
  expect([await compiled(setting.refold), await compiled(setting.executing)]).toEqual([0, 0]);
  return counts;
}

async function expectNaive(
  setting: OperationsSetting,
  cursors: Cursors,
  operation: RandomOperation,
  authorization: string | undefined,
): Promise<void> {
  const { executing, declared, naive, logged } = setting;
  const asked = await withCursors(executing, cursors, operation);
  const [one, executed] = await bothAnswers(setting, { ...asked, ...(authorization ? { authorization } : {}) });
  expect([one, logged.splice(0)]).toEqual([executed, []]);
  const { data, errors } = await naive.answer(operation, sees(authorization));
  const told = {
    data: withNames(executed.answer.data ?? null, declared),
    refused: executed.answer.errors !== undefined,
  };
  expect(told).toEqual({ data: JSON.parse(JSON.stringify(data)), refused: errors !== undefined });
}

async function assertAtOnce<T>(property: fc.IAsyncProperty<T>, operations: number): Promise<void> {
  const seeds = Array.from({ length: atOnce }, (_, index) => seed * atOnce + index);
  const numRuns = Math.ceil(operations / atOnce);
  const ended = await Promise.allSettled(seeds.map((one) => fc.assert(property, { numRuns, seed: one })));
  for (const run of ended) if (run.status === 'rejected') throw run.reason;
}
