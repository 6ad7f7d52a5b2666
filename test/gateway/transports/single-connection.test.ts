import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ExecutionResult } from 'graphql';
import { createClient } from 'graphql-sse';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Authenticator, anonymous } from '../../../src/access.ts';
import { RefoldError } from '../../../src/errors.ts';
import { createAnswer } from '../../../src/gateway/subscriptions/answer.ts';
import { OperationStream, type StreamedOperation } from '../../../src/gateway/transports/operation-stream.ts';
import { until } from '../../support/until.ts';
import { type GatewayUnderTest, startGateway } from '../gateway-under-test.ts';

/** The token is the viewer's id. */
const auth: Authenticator = ({ header }) => {
  const id = header('authorization');
  if (id === 'wrong') throw new RefoldError('UNAUTHENTICATED', 'This counts for nothing.');
  return id === undefined ? null : { ...anonymous, id };
};

type Updates = AsyncIterableIterator<ExecutionResult<Record<string, unknown>, unknown>>;

function connect({ gateway }: GatewayUnderTest, headers: Record<string, string> = {}) {
  const client = createClient({
    url: `${gateway.url}/graphql/stream`,
    singleConnection: true,
    lazyCloseTimeout: 60_000, // until it is disposed of
    retryAttempts: 0,
    headers: () => ({ ...headers }),
  });
  onTestFinished(() => client.dispose());
  return {
    client,
    iterate: (query: string, variables = {}) => client.iterate({ query, variables }) as Updates, // the API's answers
  };
}

async function next(updates: Updates): Promise<unknown> {
  return (await updates.next()).value;
}

/** The endpoint, without a client library. */
function raw({ gateway }: GatewayUnderTest) {
  const url = `${gateway.url}/graphql/stream`;
  const send = (method: string, token?: string, more: Record<string, string> = {}, body?: string, query = '') =>
    fetch(`${url}${query}`, {
      method,
      headers: { ...(token === undefined ? {} : { 'x-graphql-event-stream-token': token }), ...more },
      ...(body === undefined ? {} : { body }),
    });
  return {
    send,
    async reserve(more: Record<string, string> = {}): Promise<string> {
      const response = await send('PUT', undefined, more);
      expect(response.status).toBe(201);
      return response.text();
    },
    /** Nothing is read of the response before a caller reads it. */
    async open(token: string, more: Record<string, string> = {}): Promise<IncomingMessage> {
      const sent = request(`${url}?token=${token}`, {
        headers: { accept: 'text/event-stream', ...more },
        agent: false,
      });
      onTestFinished(() => void sent.destroy());
      sent.on('error', () => {}); // it is destroyed
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.on('error', () => {}); // as above
      return response;
    },
    operate: (token: string, id: string, query: string, more: Record<string, string> = {}) =>
      send(
        'POST',
        token,
        { 'content-type': 'application/json', ...more },
        JSON.stringify({ query, extensions: { operationId: id } }),
      ),
  };
}

const watch = (id: string) => `subscription { parcel(parcelId: "${id}") { weight } }`;

describe('the client of the protocol', () => {
  test('queries, mutates, and sees errors by their codes, over one connection', async () => {
    const tested = await startGateway();
    await tested.pack({ a: { weight: '1.5' } });
    const { iterate } = connect(tested);
    const query = iterate('query ($id: ID!) { parcel(parcelId: $id) { weight } }', { id: 'a' });
    expect(await next(query)).toEqual({ data: { parcel: { weight: '1.500' } } });
    expect(await query.next()).toEqual({ done: true, value: undefined });
    const pack = (weight: string) =>
      next(iterate(`mutation { packParcel(input: { parcelId: "b", weight: "${weight}" }) { streamVersion } }`));
    expect(await pack('2')).toEqual({ data: { packParcel: { streamVersion: 1 } } });
    expect(await pack('much')).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  });

  test('has several subscriptions on it, and ends one of them', async () => {
    const tested = await startGateway();
    const { iterate } = connect(tested);
    const [one, two] = [iterate(watch('a')), iterate(watch('b'))];
    expect([await next(one), await next(two)]).toEqual([{ data: { parcel: null } }, { data: { parcel: null } }]);
    await tested.pack({ a: { weight: '1' }, b: { weight: '2' } });
    expect([await next(one), await next(two)]).toEqual([
      { data: { parcel: { weight: '1.000' } } },
      { data: { parcel: { weight: '2.000' } } },
    ]);
    await one.return?.();
    await until(() => tested.services.subscribed === 1);
    await tested.pack({ b: { weight: '3' } });
    expect(await next(two)).toEqual({ data: { parcel: { weight: '3.000' } } });
  });

  test('leaves nothing behind', async () => {
    const tested = await startGateway();
    const { iterate, client } = connect(tested);
    await Promise.all([next(iterate(watch('a'))), next(iterate(watch('b')))]);
    expect(tested.services.subscribed).toBe(2);
    client.dispose();
    await until(() => tested.services.subscribed === 0 && tested.services.open === 0);
    expect(await (await fetch(`${tested.gateway.url}/metrics`)).text()).toMatch(/^refold_graphql_subscriptions 0$/m);
  });

  test('gets an error if no more subscriptions are served', async () => {
    const tested = await startGateway({ options: { maxSubscriptions: 1 } });
    const { iterate } = connect(tested);
    await next(iterate(watch('a')));
    expect(await next(iterate(watch('b')))).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
  });

  test('sees the connection end when the server stops, and reconnects', async () => {
    const tested = await startGateway();
    const updates = connect(tested).iterate(watch('a'));
    await next(updates);
    const ended = expect(updates.next()).rejects.toThrow();
    await tested.gateway.close();
    await ended;
  });
});

describe('a stream', () => {
  test('is used only by the client that reserved it, and is invisible to others', async () => {
    const tested = await startGateway({ auth });
    const { reserve, open, operate, send } = raw(tested);
    const [ada, eve] = [{ authorization: 'ada' }, { authorization: 'eve' }];
    const token = await reserve(ada);
    const stream = await open(token, ada);
    expect((await operate(token, '1', watch('a'), ada)).status).toBe(202);
    const unknown = await send('DELETE', 'nothing', eve, undefined, '?operationId=1');
    const told = await unknown.text();
    for (const viewer of [eve, {}]) {
      const attempts = [
        await operate(token, '2', watch('a'), viewer),
        await send('DELETE', token, viewer, undefined, '?operationId=1'),
        await send('GET', token, { accept: 'text/event-stream', ...viewer }),
      ];
      expect(attempts.map(({ status }) => status)).toEqual([404, 404, 404]);
      for (const attempt of attempts) expect(await attempt.text()).toBe(told);
    }
    expect((await operate(token, '3', watch('a'), { authorization: 'wrong' })).status).toBe(401);
    expect(tested.services.subscribed).toBe(1);
    stream.destroy();
    await until(() => tested.services.subscribed === 0);
    expect((await operate(token, '4', watch('a'), ada)).status).toBe(404);
  });

  test('is opened once', async () => {
    const { reserve, open, send } = raw(await startGateway());
    const token = await reserve();
    await open(token);
    expect((await send('GET', token, { accept: 'text/event-stream' })).status).toBe(409);
  });

  test('that is never opened is deleted, with its messages', async () => {
    const tested = await startGateway({ options: { requestTimeout: 20_000 } });
    const { reserve, operate } = raw(tested);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const token = await reserve();
    expect((await operate(token, '1', watch('a'))).status).toBe(202);
    expect(tested.services.subscribed).toBe(1);
    vi.advanceTimersByTime(20_000);
    await until(() => tested.services.subscribed === 0);
    expect((await operate(token, '2', watch('a'))).status).toBe(404);
  });

  test('is refused above the limit of open sockets', async () => {
    const { reserve, open, send } = raw(await startGateway({ options: { maxSockets: 1 } }));
    const stream = await open(await reserve());
    const refused = await send('PUT');
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('RATE_LIMITED')]);
    stream.destroy();
    await until(async () => (await send('PUT')).status === 201);
  });

  test('has one operation per id, and refuses an invalid one before it begins', async () => {
    const { reserve, open, operate, send } = raw(await startGateway());
    const token = await reserve();
    await open(token);
    expect((await operate(token, '1', watch('a'))).status).toBe(202);
    expect((await operate(token, '1', watch('a'))).status).toBe(409);
    expect((await operate(token, '2', '{ nothing }')).status).toBe(400);
    expect((await operate(token, '3', '{')).status).toBe(400);
    expect((await operate(token, 'x'.repeat(101), watch('a'))).status).toBe(400);
    expect((await send('DELETE', token, {}, undefined, '?operationId=1')).status).toBe(200);
    // A refused or ended operation has released its id.
    for (const id of ['1', '2', '3']) expect((await operate(token, id, watch('a'))).status).toBe(202);
  });

  test('refuses a persisted operation if there are none: its client then sends the document', async () => {
    const tested = await startGateway();
    const { reserve, send } = raw(tested);
    const persistedQuery = { version: 1, sha256Hash: '0'.repeat(64) };
    const body = JSON.stringify({ extensions: { operationId: 'one', persistedQuery } });
    const response = await send('POST', await reserve(), { 'content-type': 'application/json' }, body);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }] },
    ]);
  });

  test('keeps at most a hundred results for a client that does not read', async () => {
    const tested = await startGateway();
    const { reserve, operate, open } = raw(tested);
    const token = await reserve();
    const asked = Array.from({ length: 100 }, (_, id) => operate(token, String(id), '{ parcels { totalCount } }'));
    expect([...new Set((await Promise.all(asked)).map(({ status }) => status))]).toEqual([202]);
    expect((await operate(token, 'more', '{ parcels { totalCount } }')).status).toBe(429);
    const stream = await open(token);
    let all = '';
    stream.setEncoding('utf8').on('data', (part) => {
      all += part;
    });
    await until(() => all.split('event: complete').length === 101);
    expect((await operate(token, 'more', '{ parcels { totalCount } }')).status).toBe(202);
  });

  test('that is read slowly gets the latest state', async () => {
    const tested = await startGateway();
    const { reserve, operate, open } = raw(tested);
    const token = await reserve();
    for (const id of ['one', 'two']) await operate(token, id, watch('a'));
    for (let weight = 1; weight <= 50; weight++) await tested.pack({ a: { weight: String(weight) } });
    const stream = await open(token);
    let all = '';
    stream.setEncoding('utf8').on('data', (part) => {
      all += part;
    });
    for (const id of ['one', 'two'])
      await until(() => all.includes(`{"id":"${id}","payload":{"data":{"parcel":{"weight":"50.000"}}}}`));
    expect(all.split('event: next').length).toBeLessThan(10);
  });

  test('writes no more than its client reads', async () => {
    const stream = new OperationStream('ada');
    const operations = Array.from({ length: 40 }, (_, id) => stream.begin(String(id)) as StreamedOperation); // of new ids
    const server = createServer((_, res) => stream.open(res)).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo; // it listens on a port
    const [response] = (await once(request({ port, agent: false }).end(), 'response')) as [IncomingMessage];
    // More in total than the buffers of both sides hold.
    const answer = createAnswer({ data: { text: 'x'.repeat(1_000_000) } });
    for (const operation of operations) operation.answer(answer);
    expect(operations.filter(({ isOver }) => isOver).length).toBeLessThan(operations.length);
    setImmediate(() => stream.sayNothing());
    const all = text(response);
    await until(() => operations.every(({ isOver }) => isOver));
    stream.end();
    expect((await all).split('event: complete').length).toBe(operations.length + 1);
  });

  test('is open to pages of allowed sites only, by CORS', async () => {
    const shop = 'https://shop.example.com';
    const { send, open, operate } = raw(
      await startGateway({ options: { cors: { origins: [shop], credentials: true } } }),
    );
    const asked = await send('OPTIONS', undefined, { origin: shop, 'access-control-request-method': 'PUT' });
    expect(asked.headers.get('access-control-allow-methods')).toContain('PUT');
    expect(asked.headers.get('access-control-allow-origin')).toBe(shop);
    const page = { origin: shop, 'sec-fetch-site': 'cross-site' };
    const reserved = await send('PUT', undefined, page);
    expect(reserved.headers.get('access-control-allow-origin')).toBe(shop);
    const token = await reserved.text();
    const stream = await open(token, page);
    expect(stream.headers['access-control-allow-origin']).toBe(shop);
    expect((await operate(token, '1', '{ __typename }', page)).status).toBe(202);
    const [event] = (await once(stream, 'data')) as [Buffer];
    expect(event.toString()).toContain(':');
    const foreign = { ...page, origin: 'https://evil.example' };
    expect((await send('PUT', undefined, foreign)).status).toBe(403);
    expect((await send('POST', token, { ...foreign, accept: 'text/event-stream' })).status).toBe(403);
    expect((await operate(token, '2', '{ __typename }', foreign)).status).toBe(403);
  });

  test('counts a reservation and each operation towards the rate limit', async () => {
    const { reserve, operate, send } = raw(
      await startGateway({ options: { rateLimit: { operations: 2, seconds: 3600 } } }),
    );
    const token = await reserve();
    expect((await operate(token, '1', watch('a'))).status).toBe(202);
    expect((await operate(token, '2', watch('a'))).status).toBe(429);
    expect((await send('PUT')).status).toBe(429);
  });
});
