import { once } from 'node:events';
import { connect } from 'node:net';
import type { ExecutionResult } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { anonymous, type Credentials } from '../../../src/access.ts';
import { active, building } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcel, parcelV1, parcelV2 } from '../../schema/parcels.ts';
import { type GatewayUnderTest, startGateway } from '../gateway-under-test.ts';

type Updates = AsyncIterableIterator<ExecutionResult<Record<string, unknown>, unknown>>;
type Subscribe = (query: string, variables?: Record<string, unknown>) => Updates;

const transports = {
  'server-sent events': ({ endpoint }: GatewayUnderTest): Subscribe => {
    const client = createSseClient({ url: endpoint, retryAttempts: 0 });
    onTestFinished(() => client.dispose());
    return (query, variables) => client.iterate({ query, ...(variables ? { variables } : {}) }) as Updates;
  },
  WebSocket: ({ endpoint }: GatewayUnderTest): Subscribe => {
    const client = createSocketClient({
      url: endpoint.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    onTestFinished(() => void client.dispose());
    return (query, variables) => client.iterate({ query, ...(variables ? { variables } : {}) }) as Updates;
  },
};

const weigh = (weight: string) => ({ type: 'ParcelWeighed', payload: { weight } });

async function next(updates: Updates): Promise<unknown> {
  const { value } = await updates.next();
  return value;
}

describe.each(Object.entries(transports))('over %s', (_, subscribing) => {
  test('a row is sent in its current state, then after every change', async () => {
    const tested = await startGateway();
    const { services, pack } = tested;
    const updates = subscribing(tested)('subscription ($id: ID!) { parcel(parcelId: $id) { weight } }', { id: 'a' });
    expect(await next(updates)).toEqual({ data: { parcel: null } });
    await pack({ a: {} });
    expect(await next(updates)).toEqual({ data: { parcel: { weight: '1.500' } } });
    await services.append(parcel, 'a', weigh('2'));
    expect(await next(updates)).toEqual({ data: { parcel: { weight: '2.000' } } });
  });

  test('a list is sent completely, then as changes', async () => {
    const tested = await startGateway();
    await tested.pack({ a: { weight: '1' } });
    const updates = subscribing(tested)(
      'subscription { parcels { position snapshot { parcelId } entered { parcelId } } }',
    );
    expect(await next(updates)).toEqual({
      data: { parcels: { position: '1', snapshot: [{ parcelId: 'a' }], entered: [] } },
    });
    await tested.pack({ b: {} });
    expect(await next(updates)).toEqual({
      data: { parcels: { position: '2', snapshot: null, entered: [{ parcelId: 'b' }] } },
    });
  });

  test('a client that disconnects leaves nothing open', async () => {
    const tested = await startGateway();
    const updates = subscribing(tested)('subscription { parcel(parcelId: "a") { weight } }');
    await next(updates);
    // It reads nothing itself, so it has no open reads.
    expect([tested.services.open, tested.services.subscribed]).toEqual([0, 1]);
    await updates.return?.();
    await expect.poll(() => [tested.services.open, tested.services.subscribed]).toEqual([0, 0]);
  });

  test('a subscription continues while another version becomes active', async () => {
    const tested = await startGateway();
    const { services, pack, post } = tested;
    await pack({ a: { weight: '1' } });
    const updates = subscribing(tested)('subscription { parcel(parcelId: "a") { weight pieces } }');
    expect(await next(updates)).toEqual({ data: { parcel: { weight: '1.000', pieces: 2 } } });
    services.serve(active(parcelV2), active(courierDayV1));
    await services.append(parcel, 'a', weigh('12.5'));
    expect(await next(updates)).toEqual({ data: { parcel: { weight: '12.500', pieces: 2 } } });
    expect((await post('{ parcel(parcelId: "a") { weight heavy } }')).data).toEqual({
      parcel: { weight: '12.5000', heavy: true },
    });
    await services.append(parcel, 'a', weigh('3'));
    expect(await next(updates)).toEqual({ data: { parcel: { weight: '3.000', pieces: 2 } } });
  });

  test('a subscription whose columns are gone ends with the reason', async () => {
    const tested = await startGateway();
    await tested.pack({ a: {} });
    const updates = subscribing(tested)('subscription { parcel(parcelId: "a") { weight grams } }');
    await next(updates);
    tested.services.serve(active(parcelV2));
    expect(await next(updates)).toMatchObject({
      errors: [{ extensions: { code: 'PROJECTION_SWITCHED', projection: 'parcel', version: 2 } }],
    });
    expect(await updates.next()).toEqual({ done: true, value: undefined });
    await expect.poll(() => [tested.services.open, tested.services.subscribed]).toEqual([0, 0]);
  });

  test('an error during a subscription is masked, and ends only this subscription', async () => {
    const tested = await startGateway();
    const subscribe = subscribing(tested);
    const other = subscribe('subscription { parcels { position } }');
    await next(other);
    tested.services.live.row = async function* () {
      yield { row: { weight: '1' }, position: tested.services.head };
      throw new Error('secret');
    };
    const updates = subscribe('subscription { parcel(parcelId: "a") { weight } }');
    await next(updates);
    const last = await next(updates);
    expect(last).toMatchObject({ errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] });
    expect(JSON.stringify(last)).not.toContain('secret');
    await tested.pack({ a: {} });
    expect(await next(other)).toEqual({ data: { parcels: { position: '1' } } });
  });

  test('the number of subscriptions of a process is limited', async () => {
    const tested = await startGateway({ options: { maxSubscriptions: 2 } });
    const subscribe = subscribing(tested);
    const one = subscribe('subscription { parcel(parcelId: "a") { weight } }');
    const two = subscribe('subscription { parcel(parcelId: "b") { weight } }');
    await Promise.all([next(one), next(two)]);
    const refused = await next(subscribe('subscription { parcel(parcelId: "c") { weight } }')).catch((error) => error);
    if (!(refused instanceof Error)) {
      expect(refused).toMatchObject({
        errors: [
          {
            message: 'This process serves 2 subscriptions already. Try again later.',
            extensions: { code: 'RATE_LIMITED' },
          },
        ],
      });
    }
    expect(tested.services.subscribed).toBe(2);
    await one.return?.();
    await expect.poll(() => tested.services.subscribed).toBe(1);
    expect(await next(subscribe('subscription { parcel(parcelId: "c") { weight } }'))).toEqual({
      data: { parcel: null },
    });
  });
});

test('the number of subscriptions of a client is limited, over all transports together', async () => {
  const auth = ({ header, connectionParams }: Credentials) => {
    const id = header('x-viewer') ?? connectionParams.viewer;
    return typeof id === 'string' ? { ...anonymous, id } : null;
  };
  const tested = await startGateway({ auth, options: { maxSubscriptionsPerClient: 2 } });
  const url = tested.endpoint;
  const refused = { errors: [{ extensions: { code: 'RATE_LIMITED' }, message: expect.stringContaining('At most 2') }] };
  const watch = (id: string) => ({ query: `subscription { parcel(parcelId: "${id}") { weight } }` });
  const clientsOf = (viewer: string) => {
    const headers = { 'x-viewer': viewer };
    const webSocket = createSocketClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      connectionParams: { viewer },
    });
    const single = createSseClient({ url: `${url}/stream`, headers, retryAttempts: 0, singleConnection: true });
    for (const client of [webSocket, single]) onTestFinished(() => void client.dispose());
    return [webSocket, single] as const;
  };
  for (const viewer of ['ada', 'eve']) {
    const [webSocket, single] = clientsOf(viewer);
    const open = await Promise.all(
      [webSocket, single].map(async (client) => {
        const updates = client.iterate(watch('a')) as Updates;
        expect(await next(updates)).toEqual({ data: { parcel: null } });
        return updates;
      }),
    );
    const distinct = await fetch(url, {
      method: 'POST',
      headers: { 'x-viewer': viewer, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify(watch('b')),
    });
    expect([distinct.status, await distinct.text()]).toEqual([429, expect.stringContaining('At most 2')]);
    for (const client of [webSocket, single])
      expect(await next(client.iterate(watch('b')) as Updates).catch((errors) => ({ errors }))).toMatchObject(refused);
    await open[0]?.return?.();
    await expect.poll(() => tested.services.subscribed).toBe(viewer === 'ada' ? 1 : 3);
    expect(await next(single.iterate(watch('c')) as Updates)).toEqual({ data: { parcel: null } });
  }
  const metrics = await (await fetch(`${tested.gateway.url}/metrics`)).text();
  expect(metrics).toContain('\nrefold_graphql_refused_total{limit="subscriptions_per_client"} 6\n');
  expect(metrics).toContain('\nrefold_graphql_subscriptions 4\n');
});

describe('over WebSocket', () => {
  test.each([
    ['a client', { maxSocketsPerClient: 2 }, 'At most 2 sockets of one client may be open at a time. Close one first.'],
    ['the process', { maxSockets: 2 }, 'This process serves 2 sockets already. Try again later.'],
  ])('no more sockets and streams are open than %s may have, and a refusal has its reason', async (_, options, reason) => {
    const tested = await startGateway({ options });
    const open = () => new WebSocket(tested.endpoint.replace('http', 'ws'), 'graphql-transport-ws');
    const reserve = () => fetch(`${tested.endpoint}/stream`, { method: 'PUT' });
    const one = open();
    onTestFinished(() => one.terminate());
    await once(one, 'open');
    expect((await reserve()).status).toBe(201);
    const refused = open();
    const [code, told] = await once(refused, 'close');
    expect([code, String(told)]).toEqual([1013, reason]);
    expect([429, 503]).toContain((await reserve()).status);
    one.close();
    await once(one, 'close');
    await expect.poll(async () => (await reserve()).status).toBe(201);
    const metrics = await (await fetch(`${tested.gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/\nrefold_graphql_refused_total\{limit="sockets(_per_client)?"\} \d+\n/);
    expect(metrics).toContain('\nrefold_graphql_sockets 2\n');
  });

  test('a socket counts for its address until its client has authenticated, then for the viewer', async () => {
    const auth = ({ connectionParams: { viewer } }: Credentials) =>
      typeof viewer === 'string' ? { ...anonymous, id: viewer } : null;
    const tested = await startGateway({ auth, options: { maxSocketsPerClient: 1 } });
    const connect = async (viewer: string) => {
      const socket = new WebSocket(tested.endpoint.replace('http', 'ws'), 'graphql-transport-ws');
      onTestFinished(() => socket.terminate());
      const ended = once(socket, 'close').then(([code]) => code as number);
      await once(socket, 'open');
      socket.send(JSON.stringify({ type: 'connection_init', payload: { viewer } }));
      return Promise.race([once(socket, 'message').then(([message]) => String(message)), ended]);
    };
    expect(await connect('ada')).toContain('connection_ack');
    expect(await connect('eve')).toContain('connection_ack');
    expect(await connect('ada')).toBe(1013);
  });

  test('queries and mutations are answered, too', async () => {
    const tested = await startGateway();
    const subscribe = transports.WebSocket(tested);
    expect(await next(subscribe('mutation { packParcel(input: { parcelId: "a" }) { position } }'))).toEqual({
      data: { packParcel: { position: '1.00000001' } },
    });
    expect(await next(subscribe('query @after(position: "1") { parcel(parcelId: "a") { pieces } }'))).toEqual({
      data: { parcel: { pieces: 1 } },
    });
    await expect.poll(() => tested.services.open).toBe(0);
  });

  test.each([
    ['a document with a syntax error', '{ parcel(', 'GRAPHQL_PARSE_FAILED'],
    ['a document that does not fit the schema', '{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a document that is too deep', '{ parcels { edges { node { size { label { text } } } } } }', 'QUERY_TOO_COMPLEX'],
  ])('%s is refused, and the socket stays', async (_, query, code) => {
    const tested = await startGateway({ options: { maxDepth: 5 } });
    const subscribe = transports.WebSocket(tested);
    await expect(next(subscribe(query))).rejects.toMatchObject([{ extensions: { code } }]);
    expect(await next(subscribe('{ __typename }'))).toEqual({ data: { __typename: 'Query' } });
  });

  test('errors of resolvers come with the data, as over HTTP', async () => {
    const tested = await startGateway({ served: [building(parcelV1)] });
    expect(await next(transports.WebSocket(tested)('{ parcel(parcelId: "a") { weight } }'))).toMatchObject({
      data: { parcel: null },
      errors: [{ path: ['parcel'], extensions: { code: 'PROJECTION_NOT_READY', progress: 1 } }],
    });
  });

  test('pages of another site get no socket', async () => {
    const { endpoint } = await startGateway();
    const opened = (origin: string) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(endpoint.replace('http', 'ws'), 'graphql-transport-ws', { origin });
        socket.on('open', () => {
          resolve('open');
          socket.close();
        });
        socket.on('error', (error) => resolve(error.message));
      });
    expect(await opened('https://elsewhere.example')).toBe('Unexpected server response: 403');
    expect(await opened('null')).toBe('Unexpected server response: 403');
    expect(await opened(new URL(endpoint).origin)).toBe('open');
  });

  test('other paths accept no sockets', async () => {
    const { gateway } = await startGateway();
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/elsewhere`, 'graphql-transport-ws');
    const message = await new Promise((resolve) => socket.on('error', (error) => resolve(error.message)));
    expect(message).toBe('Unexpected server response: 404');
  });

  test('a stopping server closes sockets with 1001: clients reconnect elsewhere', async () => {
    const tested = await startGateway();
    const closed = Promise.withResolvers<unknown>();
    const client = createSocketClient({
      url: tested.endpoint.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      on: { closed: (event) => closed.resolve(event) },
    });
    onTestFinished(() => void client.dispose());
    const updates = client.iterate({ query: 'subscription { parcel(parcelId: "a") { weight } }' });
    await updates.next();
    const ended = expect(updates.next()).rejects.toMatchObject({ code: 1001, reason: 'Going away' });
    await tested.gateway.close();
    await ended;
    expect(await closed.promise).toMatchObject({ code: 1001, reason: 'Going away' });
    expect([tested.services.open, tested.services.subscribed]).toEqual([0, 0]);
  });
});

test('a client that does not answer the close frame delays nothing', async () => {
  const { gateway } = await startGateway();
  const stuck = connect(gateway.port, '127.0.0.1');
  onTestFinished(() => void stuck.destroy());
  stuck.write(
    `GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`,
  );
  const [head] = await once(stuck, 'data');
  expect(String(head)).toMatch(/^HTTP\/1.1 101/);
  await gateway.close();
});

test('a stopping server ends server-sent events without a complete message: clients reconnect elsewhere', async () => {
  const tested = await startGateway();
  const updates = transports['server-sent events'](tested)('subscription { parcel(parcelId: "a") { weight } }');
  await next(updates);
  const ended = expect(updates.next()).rejects.toThrow('Connection closed while having active streams');
  await tested.gateway.close();
  await ended;
  expect([tested.services.open, tested.services.subscribed]).toEqual([0, 0]);
});

test('a browser can subscribe by GET', async () => {
  const { endpoint, services } = await startGateway();
  const query = new URLSearchParams({ query: 'subscription { parcel(parcelId: "a") { weight } }' });
  const leaving = new AbortController();
  const response = await fetch(`${endpoint}?${query}`, {
    headers: { accept: 'text/event-stream' },
    signal: leaving.signal,
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('data:')) text += (await reader.read()).value ?? '';
  expect(text).toContain('event: next\ndata: {"data":{"parcel":null}}\n\n');
  leaving.abort();
  await expect.poll(() => [services.open, services.subscribed]).toEqual([0, 0]);
});
