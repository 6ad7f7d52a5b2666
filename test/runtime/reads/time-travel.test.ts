import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createRefold, defineConfig, defineEvents, defineProjection, type Refold, t } from '../../../src/index.ts';
import {
  discardDeadLetters,
  listDeadLetters,
  recallDiscarded,
} from '../../../src/runtime/dead-letters/dead-letters.ts';
import { requestRebuild } from '../../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { readRebuilds } from '../../../src/store/registry/rebuilds.ts';
import { effort } from '../../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const shelf = defineEvents('shelf', {
  Stocked: z.object({ pieces: z.int() }),
  Sold: z.object({ pieces: z.int() }),
  Cleared: z.object({}),
  Painted: z.object({ colour: z.string() }),
});

const shelfV1 = defineProjection({
  name: 'shelf',
  version: 1,
  events: shelf,
  table: { shelfId: t.text().primaryKey(), pieces: t.integer(), sales: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Stocked: (row, { payload }) => ({ pieces: (row?.pieces ?? 0) + payload.pieces, sales: row?.sales ?? 0 }),
    Sold: (row, { payload }) => row && { ...row, pieces: row.pieces - payload.pieces, sales: row.sales + 1 },
    Cleared: () => null,
  },
  history: true,
});

let isBroken = true;

const fragile = defineProjection({
  name: 'fragile',
  version: 1,
  events: shelf,
  onError: 'dead-letter',
  table: { shelfId: t.text().primaryKey(), pieces: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Stocked: (row, { payload }) => {
      if (payload.pieces === 13 && isBroken) throw new Error('thirteen is bad luck');
      return { pieces: (row?.pieces ?? 0) + payload.pieces };
    },
  },
  history: true,
});

const lenient = defineProjection({
  name: 'lenient',
  version: 1,
  events: shelf,
  onError: 'skip',
  table: { shelfId: t.text().primaryKey(), pieces: t.integer() },
  key: (event) => event.streamId,
  evolve: {
    Stocked: (row, { payload }) => {
      if (payload.pieces === 17 && isBroken) throw new Error('seventeen is bad luck');
      return { pieces: (row?.pieces ?? 0) + payload.pieces };
    },
  },
  history: true,
});

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  const gateway = { port: 0, positionTimeout: 300_000 };
  const config = defineConfig({ projections: [shelfV1, fragile, lenient], database: { url: database.url }, gateway });
  refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
});

afterAll(async () => {
  await refold.stop();
  await database.drop();
});

async function ask(query: string, variables: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const { data, errors } = await refold.graphql(query, variables);
  if (errors) throw errors[0];
  return JSON.parse(JSON.stringify(data)) as Record<string, unknown>;
}

const anEvent = fc.oneof(
  fc.integer({ min: 1, max: 9 }).map((pieces) => ({ type: 'Stocked', payload: { pieces } }) as const),
  fc.integer({ min: 1, max: 9 }).map((pieces) => ({ type: 'Sold', payload: { pieces } }) as const),
  fc.constant({ type: 'Cleared', payload: {} } as const),
  fc.constant({ type: 'Painted', payload: { colour: 'blue' } } as const),
);

test('a row as of any position or time equals what the table held then', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anEvent, { minLength: 1, maxLength: 8 }), async (events) => {
      const id = `shelf-${run++}`;
      const moments: { position: string; time: string; row: unknown }[] = [];
      for (const event of events) {
        const result = await refold.log.append({ family: shelf, streamId: id, events: [event] });
        const position = String(result.position);
        const query =
          'query ($id: ID!, $p: Position!) @after(position: $p) { shelf(shelfId: $id) { shelfId pieces sales } }';
        const { shelf: row } = await ask(query, { id, p: position });
        moments.push({ position, time: result.events[0]?.recordedAt ?? '', row });
      }
      for (const { position, time, row } of moments) {
        const query = `query ($id: ID!, $p: Position!, $t: DateTime!) {
          byPosition: shelf(shelfId: $id, asOf: { position: $p }) { shelfId pieces sales }
          byTime: shelf(shelfId: $id, asOf: { time: $t }) { shelfId pieces sales }
        }`;
        expect(await ask(query, { id, p: position, t: time })).toEqual({ byPosition: row, byTime: row });
      }
    }),
    { numRuns: effort(15, 5) },
  );
});

describe('the events of a row', () => {
  test('are listed in order, in pages, with the row after each', async () => {
    const events = [
      { type: 'Stocked', payload: { pieces: 5 } },
      { type: 'Painted', payload: { colour: 'red' } },
      { type: 'Sold', payload: { pieces: 2 } },
      { type: 'Cleared', payload: {} },
    ] as const;
    const { position } = await refold.log.append({
      family: shelf,
      streamId: 'told',
      events,
      metadata: { actor: 'ada', correlationId: 'c-1' },
    });
    await until(async () => (await refold.status()).every((status) => status.position >= position));
    const fields = `nodes { type streamPosition payload actor correlationId row { pieces } position }
      pageInfo { hasPreviousPage hasNextPage startCursor endCursor } totalCount few: totalCount(upTo: 2)`;
    const first = (await ask(`{ shelfEvents(shelfId: "told", first: 2) { ${fields} } }`)).shelfEvents as {
      nodes: { position: string }[];
      pageInfo: { endCursor: string };
    };
    expect(first).toMatchObject({
      nodes: [
        {
          type: 'Stocked',
          streamPosition: 1,
          payload: { pieces: 5 },
          actor: 'ada',
          correlationId: 'c-1',
          row: { pieces: 5 },
        },
        { type: 'Sold', streamPosition: 3, row: { pieces: 3 } },
      ],
      pageInfo: {
        hasPreviousPage: false,
        hasNextPage: true,
        startCursor: first.nodes[0]?.position,
        endCursor: first.nodes[1]?.position,
      },
      totalCount: 3,
      few: 2,
    });
    const cursor = { c: first.pageInfo.endCursor };
    expect(
      await ask(`query ($c: String!) { shelfEvents(shelfId: "told", after: $c) { ${fields} } }`, cursor),
    ).toMatchObject({
      shelfEvents: {
        nodes: [{ type: 'Cleared', row: null }],
        pageInfo: { hasPreviousPage: true, hasNextPage: false },
      },
    });
    const backward = `query ($c: String!) {
      shelfEvents(shelfId: "told", last: 1) { edges { cursor node { type position row { pieces } } } pageInfo { hasPreviousPage } }
      before: shelfEvents(shelfId: "told", last: 1, before: $c) { nodes { type } pageInfo { hasPreviousPage hasNextPage } }
      between: shelfEvents(shelfId: "told", after: $c, before: $c) { nodes { type } pageInfo { startCursor endCursor } }
    }`;
    const { shelfEvents, ...others } = await ask(backward, cursor);
    const [last] = (shelfEvents as { edges: { cursor: string; node: { position: string } }[] }).edges;
    expect(shelfEvents).toEqual({
      edges: [{ cursor: last?.node.position, node: { type: 'Cleared', position: last?.cursor, row: null } }],
      pageInfo: { hasPreviousPage: true },
    });
    expect(others).toEqual({
      before: { nodes: [{ type: 'Stocked' }], pageInfo: { hasPreviousPage: false, hasNextPage: true } },
      between: { nodes: [], pageInfo: { startCursor: null, endCursor: null } },
    });
  });

  test('of a row that never existed are empty', async () => {
    expect(
      await ask(
        '{ shelfEvents(shelfId: "never") { nodes { type } } shelf(shelfId: "never", asOf: { time: "2026-01-01T00:00:00Z" }) { pieces } }',
      ),
    ).toEqual({
      shelfEvents: { nodes: [] },
      shelf: null,
    });
  });
});

test('a past row lacks what its table lacks: dead letters, events blocked behind them, and discarded events', async () => {
  const sold = await refold.log.append({
    family: shelf,
    streamId: 'fragile-1',
    events: [5, 13, 1].map((pieces) => ({ type: 'Stocked', payload: { pieces } }) as const),
  });
  const [first, failing, last] = sold.events.map(({ position }) => String(position));
  await refold.log.append({ family: shelf, streamId: 'fragile-2', events: [{ type: 'Cleared', payload: {} }] });
  const db = createDatabase({ url: database.url });
  const options = { db, log: refold.log, readSchema: 'read_models', projection: fragile };
  const step = { actor: 'ann', reason: 'a test' };
  const letters = async () => (await listDeadLetters(options)).length;
  await until(async () => (await letters()) === 2);
  isBroken = false; // from here on, the code would fold all of them
  const query = `query ($first: Position!, $failing: Position!, $last: Position!) {
    now: fragile(shelfId: "fragile-1") { pieces }
    first: fragile(shelfId: "fragile-1", asOf: { position: $first }) { pieces }
    failing: fragile(shelfId: "fragile-1", asOf: { position: $failing }) { pieces }
    last: fragile(shelfId: "fragile-1", asOf: { position: $last }) { pieces }
    events: fragileEvents(shelfId: "fragile-1") { nodes { position row { pieces } } }
  }`;
  const told = async (): Promise<Record<string, unknown>> => {
    const answer = await ask(query, { first, failing, last });
    const { events, ...rows } = answer as { events: { nodes: { position: string; row: { pieces: number } }[] } };
    return {
      ...Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, (row as { pieces: number }).pieces])),
      events: events.nodes.map(({ position, row }) => [position.split('.')[0], row.pieces]),
    };
  };
  expect(await told()).toEqual({ now: 5, first: 5, failing: 5, last: 5, events: [[first, 5]] });
  isBroken = true;
  await discardDeadLetters(options, step);
  isBroken = false;
  const discarded = {
    now: 6,
    first: 5,
    failing: 5,
    last: 6,
    events: [
      [first, 5],
      [last, 6],
    ],
  };
  expect(await told()).toEqual(discarded);
  await recallDiscarded(options, step);
  expect(await told()).toEqual(discarded);
  await requestRebuild(db, fragile, 'read_models', step);
  await until(async () => (await readRebuilds(db)).length === 0);
  await until(async () => (await told()).now === 19);
  expect(await told()).toEqual({
    now: 19,
    first: 5,
    failing: 18,
    last: 19,
    events: [
      [first, 5],
      [failing, 18],
      [last, 19],
    ],
  });
  await db.close();
});

test('a past row lacks a skipped event until its version is rebuilt with code that accepts it', async () => {
  isBroken = true;
  const { events } = await refold.log.append({
    family: shelf,
    streamId: 'lenient-1',
    events: [5, 17, 1].map((pieces) => ({ type: 'Stocked', payload: { pieces } }) as const),
  });
  const [first, skipped, last] = events.map(({ position }) => String(position));
  const query = `query ($skipped: Position!, $last: Position!) @after(position: $last) {
    now: lenient(shelfId: "lenient-1") { pieces }
    past: lenient(shelfId: "lenient-1", asOf: { position: $skipped }) { pieces }
    events: lenientEvents(shelfId: "lenient-1") { nodes { position row { pieces } } }
  }`;
  const told = async () => {
    const { now, past, events } = (await ask(query, { skipped, last })) as {
      now: { pieces: number };
      past: { pieces: number };
      events: { nodes: { position: string; row: { pieces: number } }[] };
    };
    const states = events.nodes.map(({ position, row }) => [position.split('.')[0], row.pieces]);
    return { now: now.pieces, past: past.pieces, states };
  };
  const without = {
    now: 6,
    past: 5,
    states: [
      [first, 5],
      [last, 6],
    ],
  };
  expect(await told()).toEqual(without);
  isBroken = false;
  expect(await told()).toEqual(without);
  const db = createDatabase({ url: database.url });
  await requestRebuild(db, lenient, 'read_models', { actor: 'ann', reason: 'a test' });
  await until(async () => (await readRebuilds(db)).length === 0);
  await db.close();
  // The process that answers may still know the old table.
  await until(async () => (await told().catch(() => null))?.now === 23);
  expect(await told()).toEqual({
    now: 23,
    past: 22,
    states: [
      [first, 5],
      [skipped, 22],
      [last, 23],
    ],
  });
});

test('a future moment is refused', async () => {
  const head = await refold.log.head();
  await expect(ask(`{ shelf(shelfId: "x", asOf: { position: "${head + 1n}" }) { pieces } }`)).rejects.toThrow(
    `'asOf' is at position ${head + 1n}; the log ends at ${head}.`,
  );
});

test('a key that is not a stream id needs a function', () => {
  const table = { day: t.date().primaryKey(), pieces: t.integer() };
  const options = { name: 'day', version: 1, events: shelf, table, key: () => '2026-01-01' } as const;
  const evolve = { Stocked: () => ({ pieces: 1 }) };
  expect(() => defineProjection({ ...options, evolve, history: true })).toThrow(
    "day@1: 'history: true' needs a key of one text or uuid column",
  );
  expect(defineProjection({ ...options, evolve, history: (day) => `day-${day}` }).history?.(['2026-01-01'])).toBe(
    'day-2026-01-01',
  );
});
