import type { ExecutionResult } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { hour, watchClock } from './hour.ts';
import { auth, authorV1, boardV1, note, noteV1, sizeV1, type TokenOptions, token, writeNote } from './notes.ts';

let database: TestDatabase;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [noteV1, authorV1, boardV1, sizeV1],
    commands: [writeNote],
    auth,
    database: { url: database.url },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  let last = 0n;
  for (const [tenantId, count] of [
    ['north', 3],
    ['south', 5],
  ] as const) {
    for (let index = 1; index <= count; index++) {
      const payload = {
        tenantId,
        authorId: `${tenantId}-author`,
        text: `text ${index} of ${tenantId}`,
        secret: `secret ${index} of ${tenantId}`,
        size: index,
      };
      const event = { type: 'NoteWritten', payload } as const;
      last = (await refold.log.append({ family: note, streamId: `${tenantId}-${index}`, events: [event] })).position;
    }
  }
  await until(async () => (await refold.status()).every(({ position }) => position >= last));
});

afterAll(async () => {
  await refold.stop();
  await database.drop();
});

interface Answer {
  readonly status: number;
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { message: string; extensions: { code: string } }[];
}

async function ask(query: string, bearer: string | null, variables?: Record<string, unknown>): Promise<Answer> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }) },
    body: JSON.stringify({ query, variables }),
  });
  const text = await response.text();
  return { status: response.status, ...(text === '' ? {} : (JSON.parse(text) as object)) };
}

const as = async (options: TokenOptions, query: string, variables?: Record<string, unknown>) =>
  ask(query, await token(options), variables);

const idOf = (...parts: string[]) => Buffer.from(JSON.stringify([1, ...parts])).toString('base64url');
const south1 = idOf('note', 'south-1');

const codes = ({ errors }: Answer) => errors?.map(({ extensions }) => extensions.code);

describe('every way to a row leads only to rows of the own tenant', () => {
  const ways: readonly (readonly [string, string])[] = [
    ['by id', '{ note(noteId: "south-1") { noteId text tenantId } }'],
    ['by id, beside an own one', '{ a: note(noteId: "north-1") { text } b: note(noteId: "south-1") { text } }'],
    ['a list', '{ notes { nodes { noteId text tenantId } totalCount } }'],
    [
      'a list that asks for the other tenant',
      '{ notes(where: { tenantId: { eq: "south" } }) { nodes { text } totalCount } }',
    ],
    [
      'a list with or',
      '{ notes(where: { or: [{ tenantId: { eq: "south" } }, { size: { gte: 0 } }] }) { nodes { text } } }',
    ],
    ['a list with not', '{ notes(where: { not: { tenantId: { eq: "north" } } }) { nodes { text } totalCount } }'],
    ['a list with an empty or', '{ notes(where: { or: [] }) { nodes { text } totalCount } }'],
    ['a list from the end', '{ notes(last: 100) { nodes { text } pageInfo { hasPreviousPage } } }'],
    ['by its global id', `{ node(id: "${south1}") { id ... on Note { text tenantId } } }`],
    ['by global ids', `{ nodes(ids: ["${south1}"]) { ... on Note { text } } }`],
    ['by id, as of then', '{ note(noteId: "south-1", asOf: { position: "8" }) { noteId text tenantId } }'],
    [
      'by id, as of a time',
      '{ note(noteId: "south-1", asOf: { time: "2100-01-01T00:00:00Z" }) { noteId text tenantId } }',
    ],
    ['an aggregate', '{ notesAggregate { count max { text size } min { text } } }'],
    ['groups', '{ notesGrouped(by: [tenantId]) { count key { tenantId } max { text } } }'],
    [
      'a list filtered by what others have',
      '{ authors(where: { written: { some: { text: { startsWith: "text 1 of south" } } } }) { nodes { authorId } } }',
    ],
    ['a relation to one', '{ notes { nodes { author { authorId notes tenantId } } } }'],
    ['a relation to many', '{ authors { nodes { written { nodes { text } totalCount } } } }'],
    [
      'a relation to many, filtered',
      '{ authors { nodes { written(where: { tenantId: { eq: "south" } }) { nodes { text } totalCount } } } }',
    ],
    ['the other projection', '{ author(authorId: "south-author") { notes written { nodes { text } } } }'],
    [
      'a payload',
      'mutation { writeNote(input: { noteId: "north-9", tenantId: "north", authorId: "north-author", text: "new" }) { note { text } query { notes { nodes { text } } note(noteId: "south-2") { text } } } }',
    ],
  ];

  test.each(ways)('%s', async (_, query) => {
    const answer = await as({ tenant: 'north' }, query);
    expect(answer.errors).toBeUndefined();
    expect(JSON.stringify(answer.data)).not.toContain('south');
    // The same query by the other tenant is not empty: there was something to hide.
    if (query.startsWith('mutation')) return;
    const others = await as({ tenant: 'south' }, query);
    expect(JSON.stringify(others.data)).not.toContain('north');
  });

  test('counts and sums reveal nothing of other rows', async () => {
    const count = async (tenant: string) =>
      (
        await as(
          { tenant },
          '{ notesAggregate(where: { size: { lte: 5 } }) { count sum { size } } notes(where: { size: { lte: 5 } }) { totalCount } }',
        )
      ).data;
    expect(await count('south')).toEqual({
      notesAggregate: { count: 5, sum: { size: '15' } },
      notes: { totalCount: 5 },
    });
    expect(await count('nowhere')).toEqual({
      notesAggregate: { count: 0, sum: { size: null } },
      notes: { totalCount: 0 },
    });
  });

  test('rows of others change no response', async () => {
    // A note of the south by an author of the north: the north may not read it.
    const payload = { tenantId: 'north', authorId: 'north-author', text: 'hidden', secret: 's', size: 50 };
    const { position } = await refold.log.append({
      family: note,
      streamId: 'hidden',
      events: [
        { type: 'NoteWritten', payload },
        { type: 'NoteMoved', payload: { tenantId: 'south' } },
      ],
    });
    const find = async (filter?: string) => {
      const where = filter === undefined ? '' : `(where: { written: ${filter} })`;
      const query = `query ($p: Position!) @after(position: $p) { authors${where} { totalCount } }`;
      return (await as({ tenant: 'north' }, query, { p: String(position) })).data;
    };
    const all = await find();
    expect(await find('{ some: { text: { eq: "hidden" } } }')).toEqual({ authors: { totalCount: 0 } });
    expect(await find('{ none: { text: { eq: "hidden" } } }')).toEqual(all);
    expect(await find('{ every: { size: { lt: 50 } } }')).toEqual(all);
  });

  test('a cursor of another tenant gives no access', async () => {
    const { data } = await as({ tenant: 'south' }, '{ notes(first: 1) { pageInfo { endCursor } } }');
    const { endCursor } = (data?.notes as { pageInfo: { endCursor: string } }).pageInfo;
    const answer = await as({ tenant: 'north' }, 'query ($c: String!) { notes(before: $c) { nodes { tenantId } } }', {
      c: endCursor,
    });
    expect(JSON.stringify(answer.data)).not.toContain('south');
  });

  test('a viewer without a tenant sees no rows', async () => {
    const { data } = await as({}, '{ notes { totalCount nodes { noteId } } note(noteId: "north-1") { noteId } }');
    expect(data).toEqual({ notes: { totalCount: 0, nodes: [] }, note: null });
  });

  test('the program itself sees everything, and as a viewer what the viewer sees', async () => {
    const counted = '{ notesAggregate(where: { size: { lte: 5 } }) { count } }';
    expect(
      (
        await refold.graphql(
          '{ notes(where: { tenantId: { in: ["north", "south"] }, size: { gte: 4, lte: 5 } }) { totalCount } }',
        )
      ).data,
    ).toEqual({ notes: { totalCount: 2 } });
    const viewer = { id: 'ada', tenant: 'south', roles: [], claims: {}, expiresAt: null };
    expect((await refold.graphql(counted, {}, viewer)).data).toEqual({ notesAggregate: { count: 5 } });
  });
});

describe('an unreadable column', () => {
  const ways: readonly (readonly [string, string])[] = [
    ['selected by id', '{ note(noteId: "north-1") { secret } }'],
    ['selected under another name', '{ note(noteId: "north-1") { text: secret } }'],
    ['selected in a list', '{ notes { nodes { secret } } }'],
    ['selected through a fragment', '{ notes { edges { node { ...F } } } } fragment F on Note { secret }'],
    ['selected through a relation', '{ authors { nodes { written { nodes { secret } } } } }'],
    ['filtered by', '{ notes(where: { secret: { startsWith: "s" } }) { totalCount } }'],
    [
      'filtered by, deep inside',
      '{ notes(where: { not: { or: [{ and: [{ secret: { eq: "x" } }] }] } }) { nodes { noteId } } }',
    ],
    [
      'filtered by through a relation',
      '{ authors { nodes { written(where: { secret: { eq: "x" } }) { totalCount } } } }',
    ],
    [
      'filtered by from another table',
      '{ authors(where: { written: { some: { secret: { startsWith: "s" } } } }) { totalCount } }',
    ],
    [
      'filtered by from another table, through itself',
      '{ notes(where: { author: { written: { none: { secret: { eq: "x" } } } } }) { totalCount } }',
    ],
    ['sorted by', '{ notes(orderBy: [{ secret: ASC }]) { nodes { noteId } } }'],
    ['selected by its global id', `{ node(id: "${idOf('note', 'north-1')}") { ... on Note { secret } } }`],
    ['selected as of then', '{ note(noteId: "north-1", asOf: { position: "8" }) { secret } }'],
    ['part of payloads', '{ noteEvents(noteId: "north-1") { nodes { payload } } }'],
    ['part of payloads under another name', '{ noteEvents(noteId: "north-1") { nodes { type p: payload } } }'],
    [
      'part of payloads through fragments',
      '{ noteEvents(noteId: "north-1") { ...P } } fragment P on NoteEventConnection { nodes { ... on NoteEvent { ...E } } } fragment E on NoteEvent { payload }',
    ],
    ['selected after an event', '{ noteEvents(noteId: "north-1") { nodes { row { s: secret } } } }'],
    ['selected after an event of an edge', '{ noteEvents(noteId: "north-1") { edges { node { row { secret } } } } }'],
    ['part of payloads of edges', '{ noteEvents(noteId: "north-1") { edges { node { payload } } } }'],
    ['aggregated', '{ notesAggregate { max { secret } } }'],
    ['counted by its values', '{ notesAggregate { countDistinct { secret } } }'],
    ['filtered by in an aggregate', '{ notesAggregate(where: { secret: { eq: "x" } }) { count } }'],
    ['grouped by', '{ notesGrouped(by: [secret]) { count } }'],
    [
      'in a payload',
      'mutation { writeNote(input: { noteId: "north-8", tenantId: "north", authorId: "a", text: "new" }) { note { secret } } }',
    ],
  ];

  test.each(ways)('is refused if it is %s', async (_, query) => {
    const answer = await as({ tenant: 'north' }, query);
    expect(JSON.stringify(answer)).not.toContain('secret 1');
    expect(codes(answer)).toEqual(['FORBIDDEN']);
  });

  test('hides nothing else of the events: their types, and rows without it, are readable', async () => {
    const query = '{ noteEvents(noteId: "north-1") { nodes { type row { noteId tenantId } } } }';
    const { data } = await as({ tenant: 'north' }, query);
    expect(data).toEqual({
      noteEvents: { nodes: [{ type: 'NoteWritten', row: { noteId: 'north-1', tenantId: 'north' } }] },
    });
  });

  test('is readable for those who may read it', async () => {
    const { data } = await as({ tenant: 'north', roles: ['auditor'] }, '{ note(noteId: "north-1") { secret } }');
    expect(data).toEqual({ note: { secret: 'secret 1 of north' } });
  });
});

test("a row's history is readable by its current owner, and only the part in which it was theirs", async () => {
  const append = (event: { type: 'NoteMoved'; payload: { tenantId: string } } | ReturnType<typeof written>) =>
    refold.log.append({ family: note, streamId: 'moving', events: [event] });
  await append(written('west'));
  await append({ type: 'NoteMoved', payload: { tenantId: 'east-2' } });
  const { position } = await append({ type: 'NoteMoved', payload: { tenantId: 'west' } });
  const query = `query ($p: Position!) @after(position: $p) {
    first: note(noteId: "moving", asOf: { time: "2000-01-01T00:00:00Z" }) { tenantId }
    now: note(noteId: "moving", asOf: { position: $p }) { tenantId }
    noteEvents(noteId: "moving") { nodes { type payload row { tenantId } } }
  }`;
  const told = await as({ tenant: 'west', roles: ['auditor'] }, query, { p: String(position) });
  expect(told.errors).toBeUndefined();
  expect(told.data).toMatchObject({ first: null, now: { tenantId: 'west' } });
  expect(JSON.stringify(told.data)).not.toContain('east-2');
  const others = await as({ tenant: 'east-2', roles: ['auditor'] }, query, { p: String(position) });
  expect(others.data).toEqual({ first: null, now: null, noteEvents: { nodes: [] } });
});

describe('an unauthenticated client', () => {
  test('reads public rows and nothing else', async () => {
    const answer = await ask('{ board(board: "all") { notes } note(noteId: "north-1") { text } }', null);
    expect(answer.data).toMatchObject({ board: { notes: expect.any(Number) }, note: null });
    expect(codes(answer)).toEqual(['UNAUTHENTICATED']);
    expect(codes(await ask('{ noteSizes { totalCount } }', null))).toEqual(['UNAUTHENTICATED']);
    expect((await as({}, '{ noteSizes { totalCount } }')).data).toEqual({
      noteSizes: { totalCount: expect.any(Number) },
    });
  });

  test('runs no command, and nothing is written', async () => {
    const head = await refold.log.head();
    const input = '{ noteId: "x", tenantId: "north", authorId: "a", text: "x" }';
    expect(codes(await ask(`mutation { writeNote(input: ${input}) { position } }`, null))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await as({ tenant: 'south' }, `mutation { writeNote(input: ${input}) { position } }`))).toEqual([
      'FORBIDDEN',
    ]);
    expect(await refold.log.head()).toBe(head);
  });
});

test('an event carries its actor', async () => {
  const answer = await as(
    { sub: 'grace', tenant: 'north' },
    'mutation { writeNote(input: { noteId: "north-7", tenantId: "north", authorId: "g", text: "x" }) { position } }',
  );
  expect(answer.errors).toBeUndefined();
  const actors: unknown[] = [];
  for await (const event of refold.log.readStream(note, 'north-7')) actors.push(event.metadata.actor);
  expect(actors).toEqual(['grace']);
});

describe('an invalid token refuses the whole operation', () => {
  const tokens: readonly (readonly [string, TokenOptions])[] = [
    ['expired', { expiresIn: -60 }],
    ['signed by another', { secret: 'another secret of more than thirty-two bytes' }],
    ['of another issuer', { issuer: 'https://elsewhere.example' }],
    ['for another audience', { audience: 'others' }],
  ];
  test.each(tokens)('%s', async (_, options) => {
    const answer = await as({ tenant: 'north', ...options }, '{ board(board: "all") { notes } }');
    expect([answer.status, codes(answer), answer.data ?? null]).toEqual([401, ['UNAUTHENTICATED'], null]);
  });

  test.each([
    ['no signature', 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJleHAiOjk5OTk5OTk5OTl9.'],
    ['no token', 'x'],
    ['a very long one', 'a'.repeat(20_000)],
  ])('%s', async (_, bearer) => {
    const answer = await ask('{ board(board: "all") { notes } }', bearer);
    expect([400, 401, 431]).toContain(answer.status);
    expect(answer.data ?? null).toBeNull();
  });

  test('changed by one character', async () => {
    const good = await token({ tenant: 'north' });
    const [head, payload, signature] = good.split('.') as [string, string, string];
    const forged = Buffer.from(
      JSON.stringify({ ...JSON.parse(String(Buffer.from(payload, 'base64url'))), tenant: 'south' }),
    );
    const answer = await ask('{ notes { totalCount } }', `${head}.${forged.toString('base64url')}.${signature}`);
    expect([answer.status, codes(answer)]).toEqual([401, ['UNAUTHENTICATED']]);
  });
});

type Updates = AsyncIterableIterator<ExecutionResult<Record<string, unknown>, unknown>>;

const transports = {
  'server-sent events': (bearer: string) => {
    const client = createSseClient({
      url: `${refold.url}/graphql`,
      retryAttempts: 0,
      headers: { authorization: `Bearer ${bearer}` },
    });
    onTestFinished(() => client.dispose());
    return (query: string) => client.iterate({ query }) as Updates;
  },
  WebSocket: (bearer: string) => {
    const client = createSocketClient({
      url: `${refold.url?.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      connectionParams: { authorization: `Bearer ${bearer}` },
    });
    onTestFinished(() => void client.dispose());
    return (query: string) => client.iterate({ query }) as Updates;
  },
};

const written = (tenantId: string) =>
  ({ type: 'NoteWritten', payload: { tenantId, authorId: 'x', text: 'live', secret: 's', size: 99 } }) as const;

async function next(updates: Updates): Promise<unknown> {
  return (await updates.next()).value;
}

describe.each(Object.entries(transports))('a subscription over %s', (name, subscribing) => {
  const id = `live-${name.length}`;

  test('to a row sends it while it belongs to the own tenant, and no longer', async () => {
    const append = async (event: ReturnType<typeof written> | { type: 'NoteMoved'; payload: { tenantId: string } }) =>
      refold.log.append({ family: note, streamId: id, events: [event] });
    const updates = subscribing(await token({ tenant: 'north' }))(`subscription { note(noteId: "${id}") { text } }`);
    expect(await next(updates)).toEqual({ data: { note: null } });
    await append(written('south'));
    await append({ type: 'NoteMoved', payload: { tenantId: 'north' } });
    expect(await next(updates)).toEqual({ data: { note: { text: 'live' } } });
    await append({ type: 'NoteMoved', payload: { tenantId: 'south' } });
    expect(await next(updates)).toEqual({ data: { note: null } });
  });

  test('to a list sends rows that enter and leave the own tenant', async () => {
    const list =
      'subscription { notes(where: { size: { eq: 99 } }) { snapshot { noteId } entered { noteId } left { noteId } } }';
    const streamId = `${id}-list`;
    const updates = subscribing(await token({ tenant: 'east' }))(list);
    expect(await next(updates)).toEqual({ data: { notes: { snapshot: [], entered: [], left: [] } } });
    await refold.log.append({ family: note, streamId, events: [written('south')] });
    await refold.log.append({ family: note, streamId, events: [{ type: 'NoteMoved', payload: { tenantId: 'east' } }] });
    expect(await next(updates)).toEqual({
      data: { notes: { snapshot: null, entered: [{ noteId: streamId }], left: [] } },
    });
    await refold.log.append({
      family: note,
      streamId,
      events: [{ type: 'NoteMoved', payload: { tenantId: 'south' } }],
    });
    expect(await next(updates)).toEqual({
      data: { notes: { snapshot: null, entered: [], left: [{ noteId: streamId }] } },
    });
  });

  test('that selects or filters by an unreadable column, or follows changes of partly unreadable rows, is refused', async () => {
    const subscribe = subscribing(await token({ tenant: 'north' }));
    for (const query of [
      'subscription { note(noteId: "north-1") { secret } }',
      'subscription { notes { snapshot { secret } } }',
      'subscription { notes(where: { secret: { startsWith: "s" } }) { position } }',
      // A removed row would be announced to every viewer, whoever could see it.
      'subscription { noteChanges { position changes { key { noteId } } } }',
      'subscription { noteChanges(where: { tenantId: { eq: "north" } }, snapshot: false) { position } }',
      'subscription { noteChanges(since: "1") { position } }',
    ]) {
      expect(await next(subscribe(query))).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    }
  });

  test('ends when the token expires', async () => {
    const clock = watchClock();
    const updates = subscribing(await token({ tenant: 'north', expiresIn: hour }))(
      'subscription { note(noteId: "none") { text } }',
    );
    expect(await next(updates)).toEqual({ data: { note: null } });
    clock.strike();
    expect(await next(updates)).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect((await updates.next()).done).toBe(true);
  });
});

test('a WebSocket with an invalid token is closed', async () => {
  const subscribe = transports.WebSocket(await token({ audience: 'others' }));
  await expect(subscribe('subscription { board(board: "all") { notes } }').next()).rejects.toMatchObject({
    code: 4403,
  });
});
