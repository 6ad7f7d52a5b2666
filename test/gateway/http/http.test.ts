import { request } from 'node:http';
import { expect, test } from 'vitest';
import { defineConfig } from '../../../src/config/define-config.ts';
import { createGateway } from '../../../src/gateway/create-gateway.ts';
import { building } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcelV1 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

test('queries and mutations are answered over HTTP, and close everything', async () => {
  const { post, services } = await startGateway();
  const packed = await post('mutation { packParcel(input: { parcelId: "a" }) { position parcel { weight } } }');
  expect(packed).toMatchObject({
    status: 200,
    data: { packParcel: { position: '1.00000001', parcel: { weight: '1.500' } } },
  });
  const read = await post('query ($id: ID!) { parcel(parcelId: $id) { pieces } }', { id: 'a' });
  expect(read).toMatchObject({ status: 200, data: { parcel: { pieces: 1 } } });
  expect(services.open).toBe(0);
});

test('a single look-up shares its statements, and several reads share a snapshot', async () => {
  const { post, services } = await startGateway();
  await post('{ parcel(parcelId: "a") { weight } }');
  await post('{ parcel(parcelId: "a") { weight } parcels { totalCount } }');
  expect(services.opened).toEqual([{ snapshot: false }, { snapshot: true }]);
});

test('only /graphql answers operations, whatever another URL ends with', async () => {
  const { gateway, endpoint } = await startGateway();
  const query = new URLSearchParams({ query: '{ parcel(parcelId: "a") { weight } }' });
  const status = async (path: string) => (await fetch(`${gateway.url}${path}`)).status;
  for (const path of ['/x/graphql', '/graphql/x', '/x']) expect(await status(`${path}?${query}`), path).toBe(404);
  expect(await status(`/x?${query}&end=/graphql`)).toBe(404);
  expect((await fetch(`${endpoint}?${query}`)).status).toBe(200);
  for (const path of ['/x/graphql', '/x?end=/graphql']) {
    const sent = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    };
    expect((await fetch(`${gateway.url}${path}`, sent)).status, path).toBe(404);
  }
});

test('a query can be sent by GET, a mutation can not', async () => {
  const { endpoint, services } = await startGateway();
  const query = new URLSearchParams({ query: '{ parcel(parcelId: "a") { weight } }' });
  expect(await (await fetch(`${endpoint}?${query}`)).json()).toEqual({ data: { parcel: null } });
  const mutation = new URLSearchParams({ query: 'mutation { loseEverything { position } }' });
  expect((await fetch(`${endpoint}?${mutation}`)).status).toBe(405);
  expect(services.executed).toEqual([]);
});

test('refold-after demands a position, as the directive does', async () => {
  const { post, pack, services } = await startGateway();
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const waiting = post('{ parcels { nodes { parcelId } } }', {}, { 'refold-after': '2' });
  await expect.poll(() => services.reads.some((read) => read.kind === 'waitFor' && read.position === 2n)).toBe(true);
  services.release(parcelV1);
  expect((await waiting).data).toEqual({ parcels: { nodes: [{ parcelId: 'a' }, { parcelId: 'b' }] } });
});

test('the events of a request carry its correlation id and its trace', async () => {
  const { post, services } = await startGateway();
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const document = 'mutation { loseEverything { position } }';
  await post(document, {}, { 'x-correlation-id': 'order-7', traceparent });
  await post(document, {}, { 'x-correlation-id': 'has spaces <and more>', traceparent: 'nonsense' });
  expect(services.executed.map((execution) => execution.options.metadata)).toEqual([
    { correlationId: 'order-7', traceparent },
    { correlationId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
  ]);
});

test('an operation can be executed in the process, through the same pipeline', async () => {
  const { gateway, pack, services } = await startGateway({ options: { maxDepth: 3 } });
  await pack({ a: {} });
  const query = 'query ($id: ID!) { parcel(parcelId: $id) { weight } }';
  expect(JSON.parse(JSON.stringify(await gateway.execute(query, { id: 'a' })))).toEqual({
    data: { parcel: { weight: '1.500' } },
  });
  const { errors } = await gateway.execute('{ parcels { edges { node { size { width } } } } }');
  expect(errors?.[0]?.extensions).toEqual({ code: 'QUERY_TOO_COMPLEX' });
  expect((await gateway.execute('{ parcel(')).errors?.[0]?.extensions.code).toBe('GRAPHQL_PARSE_FAILED');
  await expect(gateway.execute('subscription { parcels { position } }')).rejects.toThrow(
    'Use a client that subscribes',
  );
  await expect.poll(() => [services.open, services.subscribed]).toEqual([0, 0]);
});

test('batches are refused, and no other site may read a response', async () => {
  const { endpoint, gateway } = await startGateway();
  const headers = { 'content-type': 'application/json', origin: 'https://elsewhere.example' };
  const batch = await fetch(endpoint, { method: 'POST', headers, body: '[{"query":"{__typename}"}]' });
  expect(batch.status).toBe(400);
  const answer = await fetch(endpoint, { method: 'POST', headers, body: '{"query":"{__typename}"}' });
  expect(answer.headers.has('access-control-allow-origin')).toBe(false);
  expect((await fetch(`${gateway.url}/elsewhere`)).status).toBe(404);
});

test('the error for a port in use names the fix', async () => {
  const { gateway, services } = await startGateway();
  const second = createGateway({
    services,
    commands: [],
    options: defineConfig({ gateway: { port: gateway.port } }).gateway,
    development: false,
    logger: { error() {} } as never, // not reached
  });
  await expect(second).rejects.toMatchObject({
    code: 'PORT_IN_USE',
    message: `Port ${gateway.port} of 127.0.0.1 is taken by another program. Stop that program, or choose another port: PORT=${gateway.port + 1}, or gateway.port in the configuration (0 takes a free one).`,
  });
});

test('health shows whether the process lives, and whether every projection can be read', async () => {
  const { gateway, services } = await startGateway({ served: [building(parcelV1), building(courierDayV1)] });
  const ready = async () => {
    const response = await fetch(`${gateway.url}/health/ready`);
    return { status: response.status, body: await response.json() };
  };
  expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
  const health = await fetch(`${gateway.url}/health`);
  expect([health.status, await health.json()]).toEqual([200, (await ready()).body]);
  expect(await ready()).toEqual({
    status: 503,
    body: {
      ready: false,
      projections: [
        { projection: 'parcel', version: 1, state: 'building', ready: false },
        { projection: 'courier_day', version: 1, state: 'building', ready: false },
      ],
    },
  });
  services.serve(
    { projection: parcelV1, active: true, state: 'active' },
    { projection: courierDayV1, active: true, state: 'active' },
  );
  expect(await ready()).toMatchObject({ status: 200, body: { ready: true } });
});

test('metrics count operations by their outcome', async () => {
  const { gateway, post } = await startGateway();
  await post('{ parcel(parcelId: "a") { weight } }');
  await post('{ parcels(first: -1) { totalCount } }');
  await post('mutation { loseEverything { position } }');
  const response = await fetch(`${gateway.url}/metrics`);
  expect(response.headers.get('content-type')).toContain('text/plain');
  const text = await response.text();
  expect(text).toContain('refold_graphql_operation_seconds_count{operation="query",outcome="ok"} 1\n');
  expect(text).toContain('refold_graphql_operation_seconds_count{operation="query",outcome="error"} 1\n');
  expect(text).toContain('refold_graphql_operation_seconds_count{operation="mutation",outcome="ok"} 1\n');
  expect(text).toContain('refold_graphql_subscriptions 0\n');
});

test('closing lets a running operation end, and accepts no new one', async () => {
  const { gateway, post, pack, services } = await startGateway();
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const running = post('query @after(position: "2") { parcels { totalCount } }');
  await expect.poll(() => services.reads.length).toBe(1);
  const closed = gateway.close();
  await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
  services.release(parcelV1);
  expect((await running).data).toEqual({ parcels: { totalCount: 2 } });
  await closed;
});

test('the size of a body is limited, with and without a content-length', async () => {
  const { endpoint } = await startGateway({ options: { maxBodySize: 2000 } });
  const send = (length: number, chunked: boolean) =>
    new Promise<number>((resolve, reject) => {
      const body = JSON.stringify({ query: `{ __typename } #${'x'.repeat(length)}` });
      const headers = {
        'content-type': 'application/json',
        ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': Buffer.byteLength(body) }),
      };
      const sending = request(endpoint, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sending.on('error', reject);
      for (let at = 0; at < body.length; at += 700) sending.write(body.slice(at, at + 700));
      sending.end();
    });
  expect([await send(1000, false), await send(1000, true)]).toEqual([200, 200]);
  expect([await send(3000, false), await send(3000, true)]).toEqual([413, 413]);
});
