import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { until } from './until.ts';

// A server that returns what it receives, and keeps it.
const accepted: { socket: Socket; got: string; closed: boolean }[] = [];
const echo = createServer((socket) => {
  const session = { socket, got: '', closed: false };
  accepted.push(session);
  socket.setEncoding('utf8').on('data', (text: string) => {
    session.got += text;
    socket.write(text);
  });
  socket.on('error', () => {}).on('close', () => Object.assign(session, { closed: true }));
});

let proxy: TcpProxy;
beforeEach(async () => {
  accepted.length = 0;
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  const address = echo.address();
  proxy = await startTcpProxy(typeof address === 'object' && address ? address.port : 0);
});
afterEach(async () => {
  await proxy.close();
  for (const { socket } of accepted) socket.destroy();
  await new Promise((resolve) => echo.close(resolve));
});

function dial() {
  const socket = connect(proxy.port, '127.0.0.1');
  const side = { socket, got: '', closed: false };
  socket.setEncoding('utf8').on('data', (text: string) => {
    side.got += text;
  });
  socket.on('error', () => {}).on('close', () => Object.assign(side, { closed: true }));
  return side;
}

test('passes bytes on in order, with any delays and splits', async () => {
  const client = dial();
  const sent = Array.from({ length: 2_000 }, (_, i) => `${i},`).join('');
  proxy.delay(5);
  proxy.split();
  client.socket.write(sent);
  await until(() => client.got === sent);
  proxy.resume();
  client.socket.end('last');
  await until(() => client.closed);
  expect(client.got).toBe(`${sent}last`);
});

test('holds one direction back and delivers it later', async () => {
  const client = dial();
  proxy.stallFromServer();
  client.socket.write('one');
  await until(() => accepted[0]?.got === 'one');
  expect(client.got).toBe('');
  proxy.resume();
  await until(() => client.got === 'one');
  proxy.stallToServer();
  client.socket.write('two');
  accepted[0]?.socket.write('news');
  await until(() => client.got === 'onenews');
  expect(accepted[0]?.got).toBe('one');
  proxy.resume();
  await until(() => client.got === 'onenewstwo');
});

test('swallows bytes and ends, and resets connections that lost something', async () => {
  const client = dial();
  const idle = dial();
  for (const side of [client, idle]) side.socket.write('a');
  await until(() => client.got === 'a' && idle.got === 'a');
  proxy.swallow();
  client.socket.write('b');
  const session = accepted.find(({ got }) => got === 'a');
  const late = dial();
  late.socket.write('c');
  await until(() => late.socket.bytesWritten === 1 && client.socket.bytesWritten === 2);
  // The server ends, and the client does not notice.
  session?.socket.destroy();
  await until(() => session?.closed);
  expect([client.closed, idle.closed, late.got]).toEqual([false, false, '']);
  await until(() => accepted.every(({ got }) => got.length <= 1));
  proxy.resume();
  await until(() => client.closed || idle.closed);
});

test('sends new connections elsewhere, and cuts the open ones', async () => {
  const other = createServer((socket) => socket.on('error', () => {}).end('other'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  const open = dial();
  open.socket.write('a');
  await until(() => open.got === 'a');
  proxy.retarget(typeof address === 'object' && address ? address.port : 0);
  const moved = dial();
  await until(() => moved.got === 'other');
  expect(open.closed).toBe(false);
  proxy.cutAll();
  await until(() => open.closed && accepted[0]?.closed);
  moved.socket.destroy();
  await new Promise((resolve) => other.close(resolve));
});

test('cuts a client off before it receives the response', async () => {
  const client = dial();
  const cut = proxy.cutAfter((chunk) => chunk.includes('COMMIT'));
  client.socket.write('begin');
  await until(() => client.got === 'begin');
  client.socket.write('COMMIT');
  await cut;
  await until(() => client.closed);
  expect([client.got, accepted[0]?.got]).toEqual(['begin', 'beginCOMMIT']);
});
