import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { parseToken } from '../src/events/position-token.ts';
import type { Projection } from '../src/index.ts';
import type { Row } from '../src/projections/columns/row-codec.ts';
import { rowOf } from '../test/refold/naive-values.ts';
import { amounts, bigs, days, ids, labels, owners, times } from '../test/refold/random-conditions.ts';
import { cursorAsked, cursorsIn, type RandomOperation, randomOperation } from '../test/refold/random-operations.ts';
import { ownerV1, thingV1 } from '../test/refold/things.ts';
import { toldRow } from './account-client.ts';
import type { ClientRecord } from './client-record.ts';
import type { Session } from './session.ts';

/** Viewers of things: `tenant role`; without it, a viewer who sees everything. */
export const viewers = ['', 'north', 'south auditor', 'nobody'] as const;

/** What the access rules of `things.ts` let a viewer see. */
export function seenBy(viewer: string): (projection: Projection, row: Row) => boolean {
  const [tenant] = viewer.split(' ');
  return (projection, row) => {
    if (!tenant) return true;
    if (projection.name === ownerV1.name) return Number(row.rank) >= 2;
    if (projection.name === thingV1.name) return row.label === tenant || row.count === 1 || row.count === 2;
    return true;
  };
}

type Columns = Readonly<{ [name: string]: unknown }>;

/** A random thing; `token` is unique. */
export function drawThing(index: number, random: () => number): Columns {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T; // below length
  const text = pick(['plain', '"quoted" \\ / \b\f\n\r\t\u0001\u007f\u2028', 'äß👍🏽', '']);
  const at = pick(times);
  return {
    ownerId: pick(owners),
    underId: pick([null, 'gone', ...ids]),
    label: pick([null, ...labels]),
    token: `00000000-0000-4000-8000-0000000000${String(index).padStart(2, '0')}`,
    count: Math.floor(random() * 6),
    big: pick(bigs),
    amount: pick(amounts),
    flag: random() < 0.5,
    day: pick(days),
    at: pick([null, at]),
    status: pick(['Opened', 'Closed']),
    secret: Math.floor(random() * 100),
    json: pick([{ b: [1, 'ä"', null, { c: 1e-7 }], a: 1e21, '10': true }, 'text "x"', 0, [], null, -1.5]),
    detail: {
      name: text,
      price: pick([null, '7.5']),
      count: pick(bigs),
      at,
      more: pick([null, { flag: true, day: pick([null, '2026-01-31']), json: { deep: [text] } }]),
    },
    items: pick([null, [], [{ at, tags: [text, 'b'], price: '1.5' }]]),
    prices: ['1.5', '20', '-0.01'].slice(0, Math.floor(random() * 4)),
    grid: [[1, null], [], [index]],
  };
}

/** Sets the places and owners of all things, once. */
export async function setThings(session: Session, random: () => number): Promise<void> {
  for (const [rank, id] of owners.slice(0, 3).entries())
    await set(session, 'setOwner', id, { ownerId: id, name: `${id}!`, rank });
  for (const [lane, day] of days.entries()) await set(session, 'setPlace', day, { day, lane, name: `${day}/${lane}` });
  for (const [index, id] of ids.entries()) await set(session, 'setThing', id, drawThing(index, random));
}

function set(session: Session, name: string, id: string, columns: Columns) {
  const type = `${name[0]?.toUpperCase()}${name.slice(1)}Input`;
  return session.ask({
    kind: 'mutation of a thing',
    query: `mutation ($input: ${type}!, $key: String) { ${name}(input: $input, idempotencyKey: $key) { position } }`,
    variables: { input: { id, columns: JSON.stringify(columns) } },
    allowed: ['STREAM_LOCKED'],
  });
}

const plainColumns = [
  'thingId',
  'ownerId',
  'label',
  'count',
  'big',
  'amount',
  'flag',
  'day',
  'at',
  'status',
  'prices',
  'grid',
];

/** Sets things that no other client sets, and reads them. */
export function createThingClient(
  session: Session,
  mine: readonly number[],
  record: ClientRecord,
  random: () => number,
) {
  return {
    async step(): Promise<void> {
      const index = mine[Math.floor(random() * mine.length)] as number; // below length
      const id = ids[index] as string; // of `ids`
      const columns = drawThing(index, random);
      const outcome = await set(session, 'setThing', id, columns);
      if (outcome.kind !== 'answered') return;
      const { position } = outcome.data.setThing as { position: string };
      const read = await session.ask({
        kind: 'own thing',
        query: `query ($id: ID!) { thing(thingId: $id) { ${plainColumns.join(' ')} owner { ownerId } } }`,
        variables: { id },
        after: parseToken(position).position,
      });
      if (read.kind !== 'answered') return;
      const owner = owners.indexOf(String(columns.ownerId)) < 3 ? { ownerId: columns.ownerId } : null;
      const expected = { ...toldRow(thingV1, rowOf(thingV1, { thingId: id, ...columns }), plainColumns), owner };
      if (!isDeepStrictEqual(read.data.thing, expected))
        record.isWrong(
          `${id} is ${JSON.stringify(read.data.thing)} after position ${position}, but was set to ${JSON.stringify(expected)}`,
        );
    },
  };
}

/** Random documents, nearly all different. */
export function createRandomOperations(session: Session, seed: number) {
  let operations: RandomOperation[] = [];
  let drawn = 0;
  const cursors = new Map<string, readonly Edge[]>();

  /** The operation with cursors from the API. */
  async function withCursors({ query, variables }: RandomOperation): Promise<RandomOperation | undefined> {
    let text = query;
    for (const asked of cursorsIn(query)) {
      const { order, index } = cursorAsked(asked);
      const edges = cursors.get(order) ?? (await readEdges(order));
      if (!edges) return undefined;
      cursors.set(order, edges);
      const cursor = edges.find(({ node }) => node.thingId === ids[index])?.cursor;
      text = text.replaceAll(JSON.stringify(asked), JSON.stringify(cursor));
    }
    return { query: text, variables };
  }

  async function readEdges(order: string): Promise<readonly Edge[] | undefined> {
    const outcome = await session.ask({
      kind: 'cursors',
      query: `{ things(orderBy: ${order}, first: 50) { edges { cursor node { thingId } } } }`,
    });
    if (outcome.kind !== 'answered') return undefined;
    return (outcome.data.things as { edges: readonly Edge[] }).edges;
  }

  return {
    next(): RandomOperation {
      const known = operations.pop();
      if (known) return known;
      operations = fc.sample(randomOperation, { numRuns: 25, seed: seed + ++drawn });
      return this.next();
    },
    withCursors,
    /** Cursors point between rows as they were before. */
    forgetCursors: () => cursors.clear(),
  };
}

interface Edge {
  readonly cursor: string;
  readonly node: { readonly thingId: string };
}
