import { once } from 'node:events';
import { type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { orderedTypes } from '../../src/gateway/accepted-types.ts';
import { keyOf } from '../../src/gateway/compiled-operations.ts';
import { defineConfig, RefoldError, type Viewer } from '../../src/index.ts';
import { startGateway } from './gateway-under-test.ts';

interface Response {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

/** By node:http, which sends any header, `host` included. */
async function send(endpoint: string, headers: Record<string, string>, more: RequestOptions = {}): Promise<Response> {
  const sent = request(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...more,
  });
  sent.end(sent.method === 'GET' ? undefined : '{"query":"{ __typename }"}');
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, type: response.headers['content-type'], body: await text(response) };
}

function opens(endpoint: string, host: string): Promise<boolean> {
  const socket = new WebSocket(endpoint.replace('http:', 'ws:'), 'graphql-transport-ws', { headers: { host } });
  return new Promise((resolve) => {
    socket.once('open', () => {
      socket.close();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

test('a development server does not answer under a name that a page of another site had resolved to this machine', async () => {
  const { endpoint, gateway } = await startGateway({ development: true });
  const { port } = gateway;
  for (const host of [
    'rebound.example',
    `rebound.example:${port}`,
    '10.0.0.1',
    '127.0.0.1.example',
    'localhost.example',
  ]) {
    expect([host, (await send(endpoint, { host })).status]).toEqual([host, 403]);
    expect([host, await opens(endpoint, host)]).toEqual([host, false]);
  }
  expect((await send(endpoint, { host: 'rebound.example' }, { method: 'GET' })).status).toBe(403); // GraphiQL
  for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'shop.localhost']) {
    expect([host, (await send(endpoint, { host })).status]).toEqual([host, 200]);
    expect([host, await opens(endpoint, host)]).toEqual([host, true]);
  }
});

test('other names are answered where the configuration has them, and in production', async () => {
  const listed = await startGateway({ development: true, options: { allowedHosts: ['shop.example.test'] } });
  expect((await send(listed.endpoint, { host: 'Shop.Example.Test:8443' })).status).toBe(200);
  expect((await send(listed.endpoint, { host: 'rebound.example' })).status).toBe(403);
  const production = await startGateway();
  expect((await send(production.endpoint, { host: 'api.example.com' })).status).toBe(200);
  const strict = await startGateway({ options: { allowedHosts: ['api.example.com'] } });
  expect((await send(strict.endpoint, { host: 'other.example.com' })).status).toBe(403);
  for (const allowedHosts of [['a b'], ['shop:80'], 'shop'])
    expect(() => defineConfig({ gateway: { allowedHosts: allowedHosts as string[] } })).toThrow('gateway.allowedHosts');
});

test('the media type of an answer goes by the weights that the client gives', async () => {
  expect(orderedTypes('a/a;q=0.1, b/b; q=0.9, c/c, d/d;q=0')).toBe('c/c, b/b, a/a');
  const { endpoint } = await startGateway();
  const ask = async (accept: string) => (await send(endpoint, { accept })).type;
  expect(await ask('application/json;q=0.5, application/graphql-response+json')).toMatch(
    'application/graphql-response+json',
  );
  expect(await ask('application/graphql-response+json;q=0.5, application/json')).toMatch('application/json');
  expect(await ask('application/graphql-response+json;q=0, */*;q=0.1')).toMatch('application/json');
});

test('a request of a type that can not be read, or answered, is told what to send', async () => {
  const { endpoint } = await startGateway();
  const unacceptable = await send(endpoint, { accept: 'image/png' });
  expect(unacceptable).toMatchObject({ status: 406, type: expect.stringContaining('application/json') });
  expect(JSON.parse(unacceptable.body).errors).toMatchObject([{ extensions: { code: 'NOT_ACCEPTABLE' } }]);
  const unreadable = await send(endpoint, { 'content-type': 'application/xml', 'refold-csrf': '1' });
  expect(unreadable.status).toBe(415);
  expect(JSON.parse(unreadable.body).errors).toMatchObject([{ extensions: { code: 'UNSUPPORTED_MEDIA_TYPE' } }]);
});

test('a client that names a document by its hash learns that there are no persisted operations here', async () => {
  const { endpoint } = await startGateway();
  const extensions = { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } };
  const headers = { 'content-type': 'application/json' };
  const ask = async (body: object) =>
    (await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  expect(await ask({ extensions })).toMatchObject({
    errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }],
  });
  expect(await ask({ extensions, query: '{ __typename }' })).toEqual({ data: { __typename: 'Query' } });
});

test('attempts with tokens that do not count are limited by the address that they come from', async () => {
  const auth = () => {
    throw new RefoldError('UNAUTHENTICATED', 'The token does not count here.');
  };
  const { post } = await startGateway({ auth, options: { rateLimit: { operations: 3, seconds: 600 } } });
  const statuses = [];
  for (let n = 0; n < 5; n++) statuses.push((await post('{ __typename }')).status);
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

test('what a viewer may not read is not among the projections of _meta', async () => {
  let viewer: Viewer | null = null;
  const { post } = await startGateway({ auth: () => viewer });
  const query = '{ _meta { projections { name } } }';
  expect((await post(query)).data).toEqual({ _meta: { projections: [] } });
  viewer = { id: 'ada', tenant: null, roles: [], claims: {}, expiresAt: null };
  expect((await post(query)).data).toEqual({ _meta: { projections: [{ name: 'parcel' }, { name: 'courier_day' }] } });
});

test('memory, event loop and processor time of the process are among the metrics', async () => {
  const { gateway } = await startGateway();
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds', 'process_cpu_seconds_total'])
    expect(metrics).toContain(`\n${name} `);
});

test('no two documents and operation names are taken for each other', () => {
  const pairs = [
    ['B query A { a }', undefined],
    ['query A { a }', 'B'],
    ['A { a }', 'B query'],
    [' query A { a }', 'B'],
    ['1 query A { a }', undefined],
    ['query A { a }', ''],
    ['query A { a }', undefined],
  ] as const;
  expect(new Set(pairs.map(([text, name]) => keyOf(text, name))).size).toBe(pairs.length);
});
