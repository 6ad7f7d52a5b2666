import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { startGateway } from '../gateway/gateway-under-test.ts';
import { until } from '../support/until.ts';
import { expectNoLeak } from './leaks.ts';
import { openSocket, sendBytes, transports } from './send.ts';
import { startTarget, type Target } from './target.ts';

const maxSubscriptions = 5;
let target: Target;

beforeAll(async () => {
  target = await startTarget({ maxSubscriptions });
});
afterAll(async () => {
  await target.stop();
});

const init = '{"type":"connection_init"}';
const subscribe = (id: string, query = 'subscription { letters { position } }') =>
  JSON.stringify({ id, type: 'subscribe', payload: { query } });

/** Sends messages, the first by itself; returns everything that came, and the close code. */
async function converse(socket: WebSocket, messages: readonly (string | Buffer)[], isEnough = (_: string) => false) {
  onTestFinished(() => socket.terminate());
  let all = '';
  const begun = Promise.withResolvers<void>();
  socket.on('message', (data) => {
    all += `${data}\n`;
    begun.resolve();
    if (isEnough(all)) socket.close(1000);
  });
  const closed = endOf(socket);
  await once(socket, 'open');
  const [first = '', ...others] = messages;
  socket.send(first, { binary: Buffer.isBuffer(first) });
  if (others.length > 0) await Promise.race([begun.promise, closed]);
  if (socket.readyState === socket.OPEN) for (const message of others) socket.send(message);
  const { code, reason } = await closed;
  expectNoLeak(`${all}${reason}`);
  return { code, all };
}

/** Also for a socket that met an error before. */
function endOf(socket: WebSocket): Promise<{ code: number; reason: string }> {
  return new Promise((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
}

const own = () => ({ authorization: `Bearer ${target.bearer}` });

describe('a WebSocket is closed', () => {
  const huge = JSON.stringify({ id: '1', type: 'subscribe', payload: { query: 'x'.repeat(300_000) } });
  test.each<[string, number, readonly (string | Buffer)[]]>([
    ['that sends before it has begun', 4401, [subscribe('1')]],
    ['that begins twice', 4429, [init, init]],
    ['that names two operations alike', 4409, [init, subscribe('1'), subscribe('1')]],
    ['that sends no JSON', 4400, ['{']],
    ['that sends nothing', 4400, ['']],
    ['that sends JSON of no protocol', 4400, ['null']],
    ['that sends a message of no type', 4400, [init, '{"type":"drop"}']],
    ['that sends the prototype of a message', 4400, [init, '{"__proto__":{"type":"ping"}}']],
    ['that begins with no object', 4400, ['{"type":"connection_init","payload":"x"}']],
    [
      'that begins with a token that does not count',
      4403,
      ['{"type":"connection_init","payload":{"authorization":"Bearer x"}}'],
    ],
    [
      'that begins with a token that is no text',
      4403,
      ['{"type":"connection_init","payload":{"authorization":{"$ne":null}}}'],
    ],
    ['that subscribes to nothing', 4400, [init, '{"id":"1","type":"subscribe"}']],
    ['that subscribes to a number', 4400, [init, '{"id":"1","type":"subscribe","payload":{"query":1}}']],
    ['that subscribes under no name', 4400, [init, '{"type":"subscribe","payload":{"query":"{ a }"}}']],
    ['that sends bytes', 4400, [Buffer.from([0, 1, 2, 255])]],
    ['that sends a huge frame', 1009, [init, huge]],
    ['that sends JSON nested a hundred thousand levels deep', 4400, ['['.repeat(100_000)]],
  ])('%s', async (_, expected, messages) => {
    expect((await converse(openSocket(target, own()), messages)).code).toBe(expected);
  });

  test.each(['graphql-ws', 'soap', 'graphql-transport-ws.evil'])('that speaks %s', async (protocol) => {
    const socket = openSocket(target, own(), protocol);
    onTestFinished(() => socket.terminate());
    const { code, reason } = await endOf(socket);
    expect([1002, 1006, 4406]).toContain(code);
    expectNoLeak(reason);
  });

  // Raw frames: a reserved bit, an unknown opcode, no mask, and a text that is not UTF-8.
  test.each<[string, number[]]>([
    ['a compressed frame', [0xc1, 0x80, 1, 2, 3, 4]],
    ['a frame of no kind', [0x83, 0x80, 1, 2, 3, 4]],
    ['an open frame', [0x81, 0x02, 0x7b, 0x7d]],
    ['a text that is none', [0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28]],
    ['a ping beyond its size', [0x89, 0xfe, 0x01, 0x00, 0, 0, 0, 0, ...new Array(256).fill(0)]],
    ['a frame of 2^63 bytes', [0x81, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4]],
  ])('after %s, and the console is left alone', async (_, frame) => {
    const written = vi.spyOn(console, 'error');
    onTestFinished(() => written.mockRestore());
    const reply = await sendBytes(
      target,
      Buffer.concat([Buffer.from(handshake({ authorization: `Bearer ${target.bearer}` })), Buffer.from(frame)]),
    );
    expect(reply.status).toBe(101);
    expectNoLeak(reply.all);
    expect(written).not.toHaveBeenCalled();
  });
});

function handshake(headers: Record<string, string>, path = '/graphql'): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

test.each<[string, Record<string, string>, string, number]>([
  ['from another site', { Origin: 'https://evil.example' }, '/graphql', 403],
  ['from a site that hides', { Origin: 'null' }, '/graphql', 403],
  ['from a site that looks alike', { Origin: 'http://localhost.evil.example' }, '/graphql', 403],
  ['to another path', {}, '/secrets', 404],
  ['to a path that climbs', {}, '/graphql/../admin', 404],
  ['to an invalid path', {}, '//[', 404],
])('a WebSocket %s is not opened', async (_, headers, path, status) => {
  const reply = await sendBytes(target, handshake(headers, path));
  expect(reply.status).toBe(status);
  expectNoLeak(reply.all);
});

test('a flood of ping messages is answered, and the next operation too', async () => {
  const pings = new Array<string>(500).fill('{"type":"ping"}');
  const messages = [init, ...pings, subscribe('1', '{ letters { totalCount } }')];
  const { all } = await converse(openSocket(target, own()), messages, (text) => text.includes('"complete"'));
  expect(all).toContain('"totalCount":3');
});

test('a flood of ping frames ends its own connection at most', async () => {
  const flooding = openSocket(target, own());
  flooding.once('open', () => {
    for (let count = 0; count < 1000; count++) flooding.ping('x');
  });
  const messages = [init, subscribe('1', '{ letters { totalCount } }')];
  const isAnswered = (text: string) => text.includes('"complete"');
  await converse(flooding, messages, isAnswered);
  expect((await converse(openSocket(target, own()), messages, isAnswered)).all).toContain('"totalCount":3');
});

test('completing operations before they begin, or unknown ones, does no harm', async () => {
  const messages = [init, '{"id":"9","type":"complete"}', subscribe('1'), '{"id":"1","type":"complete"}'];
  const { all } = await converse(
    openSocket(target, own()),
    [...messages, subscribe('2', '{ letters { totalCount } }')],
    (text) => text.includes('"id":"2","type":"complete"'),
  );
  expect(all).toContain('"totalCount":3');
});

describe.each([
  'server-sent events',
  'a shared stream',
  'a WebSocket',
] as const)('a flood of subscriptions by %s', (transport) => {
  test('is refused above the limit, and leaves nothing behind', async () => {
    const socket = openSocket(target, own());
    onTestFinished(() => socket.terminate());
    let opened = '';
    socket.on('message', (data) => {
      opened += data;
    });
    await once(socket, 'open');
    socket.send(init);
    await until(() => opened.includes('connection_ack'));
    for (let id = 0; id < maxSubscriptions; id++) socket.send(subscribe(String(id)));
    await until(() => opened.split('"next"').length > maxSubscriptions);
    const query = 'subscription { letters { position } }';
    const reply = await transports[transport](target, { query }, own());
    expectNoLeak(reply.all);
    expect(reply.codes).toEqual(['RATE_LIMITED']);
    socket.terminate();
    await until(async () => {
      const response = await fetch(`${target.url}/metrics`);
      return /^refold_graphql_subscriptions 0$/m.test(await response.text());
    });
  });
});

describe('an endless request is cut off', () => {
  // Its own gateway: with such a short limit, other requests on a busy machine would end like this, too.
  const startHasty = async () => (await startGateway({ options: { requestTimeout: 200 } })).gateway;
  const head = ['POST /graphql HTTP/1.1', 'Host: localhost'];
  test.each<[string, readonly string[]]>([
    ['in its head', head],
    ['in its body', [...head, 'Content-Type: application/json', 'Content-Length: 1000', '', '{"query":"']],
    ['in its chunks', [...head, 'Content-Type: application/json', 'Transfer-Encoding: chunked', '', '5', '{"que']],
  ])('%s', async (_, lines) => {
    const reply = await sendBytes(await startHasty(), lines.join('\r\n'));
    expectNoLeak(reply.all);
    expect(reply.status).toBe(408);
  });

  test('also if it sends slowly', async () => {
    const { port } = await startHasty();
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => {}); // it is cut off
    socket.write(`${head.join('\r\n')}\r\nx: `);
    const drip = setInterval(() => socket.write('x'), 20);
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(drip);
  });
});

test('no attempt caused an unexpected error', () => target.expectNoAlarm());
