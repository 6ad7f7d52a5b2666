import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectNoLeak } from './leaks.ts';
import { type Operation, sendHttp, type Transport, transports } from './send.ts';
import { ownLetters, startTarget, type Target } from './target.ts';

/** Features that are off by default: a federated subgraph, documents by their hash, pages of another site. */
const site = 'https://shop.example';
const known = '{ letters { totalCount } }';
const hash = createHash('sha256').update(known).digest('hex');
const counted = { letters: { totalCount: ownLetters } };
let target: Target;

beforeAll(async () => {
  target = await startTarget({
    federation: true,
    cors: { origins: [site, 'https://desk.example'], credentials: true },
    persistedOperations: { documents: { [hash]: known } },
  });
});
afterAll(async () => {
  await target.stop();
});

const entities = (...representations: unknown[]): Operation => ({
  query: 'query ($of: [_Any!]!) { _entities(representations: $of) { ... on Letter { letterId subject } } }',
  variables: { of: representations },
});
const letter = (letterId: unknown, others: object = {}) => ({ __typename: 'Letter', letterId, ...others });
const persisted = (sha256Hash: unknown, query?: string): Operation => ({
  ...(query === undefined ? {} : { query }),
  extensions: { persistedQuery: { version: 1, sha256Hash } },
});

interface Attempt extends Operation {
  readonly name: string;
  readonly code: string | null;
  readonly data?: unknown;
}

const attempts: readonly Attempt[] = [
  { name: 'a foreign entity', ...entities(letter('south-1')), code: null, data: { _entities: [null] } },
  {
    name: 'a foreign entity among own ones',
    ...entities(letter('south-1'), letter('north-1')),
    code: null,
    data: { _entities: [null, { letterId: 'north-1', subject: 'own 1' }] },
  },
  {
    name: 'an entity with what is not its key',
    ...entities(letter('south-1', { tenantId: 'north' })),
    code: null,
    data: { _entities: [null] },
  },
  {
    name: 'a secret of an entity',
    query:
      '{ _entities(representations: [{ __typename: "Letter", letterId: "north-1" }]) { ... on Letter { secret } } }',
    code: 'FORBIDDEN',
  },
  { name: 'an entity of no type', ...entities({ letterId: 'south-1' }), code: 'BAD_USER_INPUT' },
  ...['__proto__', 'constructor', 'Query', 'LetterSent', 'toString'].map((type) => ({
    name: `an entity of the type ${type}`,
    ...entities({ __typename: type, letterId: 'south-1' }),
    code: 'BAD_USER_INPUT',
  })),
  { name: 'an entity without its key', ...entities({ __typename: 'Letter' }), code: 'BAD_USER_INPUT' },
  { name: 'an entity by an object', ...entities(letter({ $ne: null })), code: 'BAD_USER_INPUT' },
  { name: 'an entity by NUL', ...entities(letter('\u0000')), code: 'BAD_USER_INPUT' },
  { name: 'no entity at all', ...entities('south-1'), code: 'BAD_USER_INPUT' },
  { name: 'a list of entities in an entity', ...entities([letter('south-1')]), code: 'BAD_USER_INPUT' },
  {
    name: 'a thousand and one entities',
    ...entities(...Array.from({ length: 1001 }, () => letter('south-1'))),
    code: 'BAD_USER_INPUT',
  },
  { name: 'a hash of nothing', ...persisted('0'.repeat(64)), code: 'PERSISTED_QUERY_NOT_FOUND' },
  { name: 'a hash in other letters', ...persisted(hash.toUpperCase()), code: 'PERSISTED_QUERY_NOT_FOUND' },
  { name: 'the hash of a prototype', ...persisted('__proto__'), code: 'PERSISTED_QUERY_NOT_FOUND' },
  { name: 'the hash of a constructor', ...persisted('constructor'), code: 'PERSISTED_QUERY_NOT_FOUND' },
  { name: 'a hash that is a list', ...persisted([hash]), code: 'BAD_USER_INPUT' },
  {
    name: 'a hash of a known document beside another document',
    ...persisted(hash, '{ _service { sdl } }'),
    code: 'BAD_USER_INPUT',
  },
  { name: 'a known hash', ...persisted(hash), code: null, data: counted },
];

describe.each([
  'a plain POST',
  'a POST in chunks',
  'a shared stream',
  'a WebSocket',
] as const)('by %s', (transport: Transport) => {
  // A WebSocket's message always has a document, which may be empty.
  const filled = (operation: Operation) => (transport === 'a WebSocket' ? { query: '', ...operation } : operation);

  test.each(attempts)('$name', async ({ name: _, code, data, ...operation }) => {
    const authorization = `Bearer ${target.bearer}`;
    const reply = await transports[transport](target, filled(operation), { authorization });
    expectNoLeak(reply.all);
    expect([...new Set(reply.codes)], reply.body).toEqual(code === null ? [] : [code]);
    if (data !== undefined) expect(reply.body).toContain(`"data":${JSON.stringify(data)}`);
  });
});

test.each([
  'https://evil.example',
  'null',
  'http://shop.example',
  'https://shop.example.evil.example',
  'https://shop.example:444',
  'https://evil.example/https://shop.example',
])('a page of %s gets nothing that its browser would show it', async (origin) => {
  const body = JSON.stringify({ query: known });
  const headers = { origin, 'content-type': 'application/json', authorization: `Bearer ${target.bearer}` };
  for (const method of ['OPTIONS', 'POST']) {
    const reply = await sendHttp(target, { method, headers, ...(method === 'POST' ? { body } : {}) });
    expectNoLeak(reply.all);
    expect(reply.all).not.toMatch(/^access-control-allow/im);
  }
});

test('no attempt caused an unexpected error', () => target.expectNoAlarm());
