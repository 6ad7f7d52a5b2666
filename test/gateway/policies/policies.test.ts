import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { ExecutionResult } from 'graphql';
import { createClient as createSocketClient } from 'graphql-ws';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { defineConfig } from '../../../src/index.ts';
import { type Answer, type GatewayUnderTest, startGateway, type TestOptions } from '../gateway-under-test.ts';

const codes = ({ errors }: Answer) => errors?.map(({ extensions }) => extensions.code);

describe('the cost of an operation', () => {
  const maxCost = 500;

  test.each([
    ['a long page', '{ parcels(first: 501) { nodes { weight } } }', {}],
    ['a long page from the end', '{ parcels(last: 501) { nodes { weight } } }', {}],
    ['by a variable', 'query ($n: Int) { parcels(first: $n) { nodes { weight } } }', { n: 501 }],
    ['by a default', 'query ($n: Int = 501) { parcels(first: $n) { nodes { weight } } }', {}],
    [
      'many pages',
      `{ ${Array.from({ length: 26 }, (_, index) => `p${index}: parcels { nodes { weight } }`).join(' ')} }`,
      {},
    ],
    [
      'pages through fragments',
      'query { ...A ...B } fragment A on Query { a: parcels(first: 300) { nodes { weight } } } fragment B on Query { b: parcels(first: 300) { nodes { weight } } }',
      {},
    ],
    ['many ids', 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: new Array(501).fill('x') }],
    ['many ids by a default', `query ($ids: [ID!]! = [${'"x" '.repeat(501)}]) { nodes(ids: $ids) { id } }`, {}],
    [
      'many entities by a default',
      `query ($of: [_Any!]! = [${'{ __typename: "Parcel", parcelId: "x" } '.repeat(501)}]) { _entities(representations: $of) { __typename } }`,
      {},
    ],
    ['a list to watch by a default', 'subscription ($n: Int = 501) { parcels(first: $n) { position } }', {}],
    ['groups', '{ parcelsGrouped(by: [status], first: 501) { count } }', {}],
    ['a list to watch', 'subscription { parcels(first: 501) { position } }', {}],
  ])('is refused above the limit: %s', async (_, query, variables) => {
    // Long literals need more tokens than the default allows.
    const { post } = await startGateway({ options: { maxCost, federation: true, maxTokens: 10_000 } });
    expect(codes(await post(query, variables))).toEqual(['QUERY_TOO_COMPLEX']);
  });

  test('is computed again for other variables', async () => {
    const { post } = await startGateway({ options: { maxCost } });
    const query = 'query ($n: Int) { parcels(first: $n) { nodes { weight } } }';
    expect(codes(await post(query, { n: 499 }))).toBeUndefined();
    expect(codes(await post(query, { n: 501 }))).toEqual(['QUERY_TOO_COMPLEX']);
    expect(codes(await post(query, {}))).toBeUndefined();
  });
});

describe('a rate limit', () => {
  test('refuses operations above the limit, and says when to retry', async () => {
    const { post } = await startGateway({ options: { rateLimit: { operations: 3, seconds: 600 } } });
    for (let count = 0; count < 3; count++) expect((await post('{ __typename }')).status).toBe(200);
    const refused = await post('{ __typename }');
    expect([refused.status, codes(refused)]).toEqual([429, ['RATE_LIMITED']]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('distinguishes clients by the address that the trusted proxy saw, not by their own headers', async () => {
    const { post } = await startGateway({ options: { proxies: 1, rateLimit: { operations: 1, seconds: 600 } } });
    const from = async (header: string) => (await post('{ __typename }', {}, { 'x-forwarded-for': header })).status;
    expect(await from('10.0.0.1')).toBe(200);
    expect(await from('10.0.0.2')).toBe(200);
    expect(await from('9.9.9.9, 10.0.0.1')).toBe(429);
  });

  test('ignores the header without a proxy', async () => {
    const { post } = await startGateway({ options: { rateLimit: { operations: 1, seconds: 600 } } });
    expect((await post('{ __typename }', {}, { 'x-forwarded-for': '10.0.0.1' })).status).toBe(200);
    expect((await post('{ __typename }', {}, { 'x-forwarded-for': '10.0.0.2' })).status).toBe(429);
  });

  test('counts documents that are refused, over each transport', async () => {
    const limits = { maxDepth: 5, maxCost: 500, maxAliases: 2 };
    const refused = [
      { query: '{' },
      { query: '{ nothing }' },
      { query: '{ parcels { edges { node { size { label { text } } } } } }' },
      { query: '{ parcels(first: 600) { nodes { weight } } }' },
      { query: '{ a: parcels { totalCount } b: parcels { totalCount } c: parcels { totalCount } }' },
      { query: 'query A { __typename }', operationName: 'B' },
      { query: 'query ($n: Int) { parcels(first: $n) { totalCount } }', variables: { n: 'x' } },
      { document: '{ __typename }' },
    ];
    await countRefused(refused, limits);
    const persistedOperations = { documents: {}, only: true };
    await countRefused([{ query: '{ __typename }' }, { query: 'subscription { parcels { position } }' }], {
      persistedOperations,
    });
  });

  async function countRefused(bodies: readonly object[], options: NonNullable<TestOptions['options']>) {
    const rateLimit = { operations: bodies.length * 3, seconds: 600 };
    const tested = await startGateway({ options: { ...options, rateLimit } });
    const send = async (accept: string, body: object) => {
      const headers = { 'content-type': 'application/json', accept };
      return (await fetch(tested.endpoint, { method: 'POST', headers, body: JSON.stringify(body) })).text();
    };
    const ask = overSocket(tested);
    for (const body of bodies) {
      for (const accept of ['application/json', 'text/event-stream']) {
        const answer = await send(accept, body);
        expect(answer).toContain('"errors"');
        expect(answer).not.toContain('RATE_LIMITED');
      }
      const { errors } = await ask(body);
      expect(errors).toMatchObject([{ extensions: { code: expect.not.stringMatching('RATE_LIMITED') } }]);
    }
    for (const body of [{ query: '{ __typename }' }, { query: '{' }]) {
      for (const accept of ['application/json', 'text/event-stream'])
        expect(await send(accept, body)).toContain('RATE_LIMITED');
      expect(await ask(body)).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
    }
    const metrics = await (await fetch(`${tested.gateway.url}/metrics`)).text();
    expect(metrics).toContain('\nrefold_graphql_refused_total{limit="operations"} 6\n');
  }

  test('counts operations of a WebSocket too', async () => {
    const tested = await startGateway({ options: { rateLimit: { operations: 1, seconds: 600 } } });
    const ask = overSocket(tested);
    expect(await ask({ query: '{ __typename }' })).toEqual({ data: { __typename: 'Query' } });
    expect(await ask({ query: '{ __typename }' })).toMatchObject({
      errors: [{ extensions: { code: 'RATE_LIMITED' } }],
    });
  });
});

describe('persisted operations', () => {
  const document = '{ parcels { totalCount } }';
  const hash = createHash('sha256').update(document).digest('hex');
  const documents = { [hash]: document };
  const named = (sha256Hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash } } });

  async function send({ endpoint }: GatewayUnderTest, body: object): Promise<unknown> {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  }

  test.each(['HTTP', 'WebSocket'])('are answered by their hash over %s', async (transport) => {
    const tested = await startGateway({ options: { persistedOperations: { documents } } });
    const ask = transport === 'HTTP' ? (body: object) => send(tested, body) : overSocket(tested);
    expect(await ask(named(hash))).toEqual({ data: { parcels: { totalCount: 0 } } });
    expect(await ask(named('0'.repeat(64)))).toMatchObject({
      errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
    });
    expect(await ask({ query: '{ __typename }' })).toEqual({ data: { __typename: 'Query' } });
  });

  test('are not executed in place of another document that came with the hash', async () => {
    const tested = await startGateway({ options: { persistedOperations: { documents } } });
    expect(await send(tested, { query: document, ...named(hash) })).toEqual({ data: { parcels: { totalCount: 0 } } });
    expect(await send(tested, { query: '{ __typename }', ...named(hash) })).toMatchObject({
      errors: [{ message: expect.stringContaining('of another one'), extensions: { code: 'BAD_USER_INPUT' } }],
    });
  });

  test.each(['HTTP', 'WebSocket'])('can be the only operations allowed over %s', async (transport) => {
    const tested = await startGateway({ options: { persistedOperations: { documents, only: true } } });
    const ask = transport === 'HTTP' ? (body: object) => send(tested, body) : overSocket(tested);
    expect(await ask(named(hash))).toEqual({ data: { parcels: { totalCount: 0 } } });
    expect(await ask({ query: document })).toEqual({ data: { parcels: { totalCount: 0 } } });
    for (const body of [{ query: '{ __typename }' }, { query: `${document} ` }])
      expect(await ask(body)).toMatchObject({ errors: [{ extensions: { code: 'PERSISTED_QUERY_ONLY' } }] });
    for (const name of ['0'.repeat(64), '__proto__', 'constructor'])
      expect(await ask({ query: '{ __typename }', ...named(name) })).toMatchObject({
        errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
      });
  });

  test('get an unsupported error over WebSocket if there are none', async () => {
    const ask = overSocket(await startGateway());
    expect(await ask(named(hash))).toMatchObject({
      errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }],
    });
    expect(await ask({ query: document, ...named(hash) })).toEqual({ data: { parcels: { totalCount: 0 } } });
  });

  test('of which one has no operation are executed as any other', async () => {
    const wrong = '{ nothing }';
    const wrongHash = createHash('sha256').update(wrong).digest('hex');
    const tested = await startGateway({ options: { persistedOperations: { documents: { [wrongHash]: wrong } } } });
    expect(await send(tested, named(wrongHash))).toMatchObject({
      errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
    });
  });
});

describe('pages of other sites', () => {
  const shop = 'https://shop.example.com';
  const preflight = (endpoint: string, origin: string) =>
    fetch(endpoint, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
    });

  test('get no responses by default', async () => {
    const { endpoint } = await startGateway();
    expect((await preflight(endpoint, shop)).headers.get('access-control-allow-origin')).toBeNull();
  });

  test('are allowed by their origin, and no others', async () => {
    const { endpoint } = await startGateway({ options: { cors: { origins: [shop], credentials: true } } });
    const allowed = await preflight(endpoint, shop);
    expect(allowed.headers.get('access-control-allow-origin')).toBe(shop);
    expect(allowed.headers.get('access-control-allow-credentials')).toBe('true');
    for (const origin of ['https://shop.example.com.evil.example', 'http://shop.example.com', 'null'])
      expect((await preflight(endpoint, origin)).headers.get('access-control-allow-origin')).not.toBe(origin);
  });

  test('may read the headers with the time to retry and the answering version', async () => {
    const { endpoint } = await startGateway({ options: { cors: { origins: [shop] } } });
    const { headers } = await fetch(endpoint, {
      method: 'POST',
      headers: { origin: shop, 'content-type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    });
    const exposed = headers.get('access-control-expose-headers')?.split(/, ?/);
    expect(exposed).toEqual([
      ...['retry-after', 'deprecation', 'sunset'],
      ...['refold-deprecated', 'refold-canary', 'refold-position'],
    ]);
  });

  test('open WebSockets by the same list', async () => {
    const { endpoint } = await startGateway({ options: { cors: { origins: [shop] } } });
    const open = async (origin: string) => {
      const socket = new WebSocket(endpoint.replace('http', 'ws'), 'graphql-transport-ws', { origin });
      onTestFinished(() => socket.terminate());
      return Promise.race([
        once(socket, 'open').then(() => 'open'),
        once(socket, 'unexpected-response').then(([, response]) => response.statusCode),
      ]);
    };
    expect(await open(shop)).toBe('open');
    expect(await open('https://evil.example')).toBe(403);
  });
});

test.each([
  [{ cors: { origins: ['*'] } }, "gateway.cors.origins holds '*', which is not an origin"],
  [{ cors: { origins: ['https://shop.example.com/'] } }, 'which is not an origin'],
  [{ rateLimit: { operations: 0 } }, 'gateway.rateLimit.operations is a whole number from 1 on, found 0.'],
  [{ persistedOperations: { documents: { abc: '{ a }' } } }, "64 hex digits, to its text; found 'abc'"],
  [
    { persistedOperations: { documents: {}, allow: true } as never },
    "unknown option 'allow' of gateway.persistedOperations",
  ],
])('%j is refused at start-up', (gateway, problem) => {
  expect(() => defineConfig({ gateway })).toThrow(problem);
});

function overSocket({ endpoint }: GatewayUnderTest) {
  const client = createSocketClient({
    url: endpoint.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  onTestFinished(() => void client.dispose());
  return (body: object): Promise<ExecutionResult> =>
    new Promise((resolve) => {
      let answer: ExecutionResult | undefined;
      client.subscribe({ query: '', ...body } as never, {
        next: (value) => {
          answer = value as ExecutionResult;
        },
        error: (errors) => resolve({ errors } as ExecutionResult),
        complete: () => resolve(answer ?? {}),
      });
    });
}
