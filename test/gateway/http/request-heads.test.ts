import { once } from 'node:events';
import { type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { orderedTypes } from '../../../src/gateway/http/accepted-types.ts';
import { documentKey } from '../../../src/gateway/operations/compiled-operations.ts';
import { defineConfig, RefoldError, type Viewer } from '../../../src/index.ts';
import { startGateway } from '../gateway-under-test.ts';

interface Response {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly body: string;
  /** Number of characters of all headers. */
  readonly heads: number;
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
  const heads = response.rawHeaders.join('').length;
  return { status: response.statusCode, type: response.headers['content-type'], body: await text(response), heads };
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

test('a development server refuses host names that another site could resolve to this machine', async () => {
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

test('other names are accepted if they are configured, and in production', async () => {
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

test("the media type of a response follows the client's weights", async () => {
  expect(orderedTypes('a/a;q=0.1, b/b; q=0.9, c/c, d/d;q=0')).toBe('c/c, b/b, a/a');
  const { endpoint } = await startGateway();
  const ask = async (accept: string) => (await send(endpoint, { accept })).type;
  expect(await ask('application/json;q=0.5, application/graphql-response+json')).toMatch(
    'application/graphql-response+json',
  );
  expect(await ask('application/graphql-response+json;q=0.5, application/json')).toMatch('application/json');
  expect(await ask('application/graphql-response+json;q=0, */*;q=0.1')).toMatch('application/json');
});

test('the error for an unsupported media type names what to send', async () => {
  const { endpoint } = await startGateway();
  const unacceptable = await send(endpoint, { accept: 'image/png' });
  expect(unacceptable).toMatchObject({ status: 406, type: expect.stringContaining('application/json') });
  expect(JSON.parse(unacceptable.body).errors).toMatchObject([{ extensions: { code: 'NOT_ACCEPTABLE' } }]);
  const unreadable = await send(endpoint, { 'content-type': 'application/xml', 'refold-csrf': '1' });
  expect(unreadable.status).toBe(415);
  expect(JSON.parse(unreadable.body).errors).toMatchObject([{ extensions: { code: 'UNSUPPORTED_MEDIA_TYPE' } }]);
});

test('a client that names a document by its hash gets an error if there are no persisted operations', async () => {
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

test('attempts with invalid tokens are limited by address', async () => {
  const auth = () => {
    throw new RefoldError('UNAUTHENTICATED', 'The token does not count here.');
  };
  const { post } = await startGateway({ auth, options: { rateLimit: { operations: 3, seconds: 600 } } });
  const statuses = [];
  for (let n = 0; n < 5; n++) statuses.push((await post('{ __typename }')).status);
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

test('projections that a viewer may not read are not in _meta', async () => {
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

test('no two pairs of document and operation name are confused', () => {
  const pairs = [
    ['B query A { a }', undefined],
    ['query A { a }', 'B'],
    ['A { a }', 'B query'],
    [' query A { a }', 'B'],
    ['1 query A { a }', undefined],
    ['query A { a }', ''],
    ['query A { a }', undefined],
  ] as const;
  expect(new Set(pairs.map(([text, name]) => documentKey(text, name))).size).toBe(pairs.length);
});

/** Sends and receives bytes; the server closes the connection. */
async function exchange(endpoint: string, head: string, body = ''): Promise<string> {
  const { port } = new URL(endpoint);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(`${head}\r\nConnection: close\r\n\r\n${body}`);
  return text(socket);
}

const body = '{"query":"{ __typename }"}';
const plain = `Content-Type: application/json\r\nContent-Length: ${body.length}`;

test('an absolute URL as target is accepted, an invalid target is refused, and no response has a stack trace', async () => {
  const { endpoint, logged } = await startGateway({ development: true });
  const { host } = new URL(endpoint);
  const answered = await exchange(endpoint, `POST http://${host}/graphql HTTP/1.1\r\nHost: other\r\n${plain}`, body);
  expect(answered).toContain('{"data":{"__typename":"Query"}}');
  // The host of the URL counts, so it does not bypass the check.
  const rebound = `POST http://rebound.example/graphql HTTP/1.1\r\nHost: ${host}\r\n${plain}`;
  expect(await exchange(endpoint, rebound, body)).toMatch(/^HTTP\/1.1 403 /);
  for (const target of ['*', 'graphql', 'ftp://localhost/graphql', 'http://[/graphql', 'javascript:0']) {
    const refused = await exchange(endpoint, `OPTIONS ${target} HTTP/1.1\r\nHost: ${host}`);
    expect([target, refused]).toEqual([target, expect.stringMatching(/^HTTP\/1.1 400 /)]);
    expect(refused).not.toContain(' at ');
  }
  const production = await startGateway();
  for (const name of ['[', 'a b', 'a:b', '@', '%'])
    for (const path of ['/graphql', '/graphql?query={__typename}', '/health', '/']) {
      const refused = await exchange(production.endpoint, `GET ${path} HTTP/1.1\r\nHost: ${name}`);
      expect([name, path, refused]).toEqual([name, path, expect.stringMatching(/^HTTP\/1.1 400 /)]);
      expect(refused).not.toContain(' at ');
    }
  expect([...logged, ...production.logged].filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

test('a client that offers HTTP/2 is answered by HTTP/1.1', async () => {
  const { endpoint } = await startGateway();
  const offer = 'Host: localhost\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings';
  expect(await exchange(endpoint, `POST /graphql HTTP/1.1\r\n${offer}\r\n${plain}`, body)).toContain('{"data":');
  expect(await exchange(endpoint, `GET /health/ready HTTP/1.1\r\n${offer}`)).toContain('"ready":true');
});

test('the path alone selects a health response, not the query', async () => {
  const { gateway } = await startGateway();
  const status = async (path: string) => (await fetch(gateway.url + path)).status;
  for (const path of ['/health', '/health/live', '/health/ready', '/health/live?at=1', '/health?at=1'])
    expect([path, await status(path)]).toEqual([path, 200]);
  expect(await status('/elsewhere?x=/health/live')).toBe(404);
  expect(await status('/graphql?x=/health/live')).toBe(400);
});

test('a request refused for its head gets the fitting status', async () => {
  const { endpoint } = await startGateway();
  const at = async (method: string, headers: Record<string, string> = {}, sent?: string) => {
    const response = await fetch(endpoint, { method, headers, ...(sent === undefined ? {} : { body: sent }) });
    return { status: response.status, allow: response.headers.get('allow'), body: await response.text() };
  };
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'])
    expect([method, await at(method)]).toMatchObject([method, { status: 405, allow: 'GET, POST' }]);
  const json = { 'content-type': 'application/json' };
  const compressed = await at('POST', { ...json, 'content-encoding': 'gzip' }, body);
  expect([compressed.status, compressed.body]).toEqual([415, expect.stringContaining('without content-encoding')]);
  for (const none of ['{}', '{"query":""}', '{"query":null}'])
    expect(await at('POST', json, none)).toMatchObject({
      status: 400,
      body: expect.stringContaining("The request has no document. Send it as 'query'."),
    });
  expect(await at('GET', { accept: 'application/json' })).toMatchObject({ status: 400 });
  // Repeated for each type, the response would be megabytes long.
  const many = await send(endpoint, { accept: ','.repeat(4000) });
  expect([many.status, many.heads < 1000]).toEqual([406, true]);
});
