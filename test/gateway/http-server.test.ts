import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from '../../src/gateway/http-server.ts';

const longerThanTheTest = 3_600_000;

const place = { host: '127.0.0.1', port: 0, requestTimeout: 30_000 };

test('a connection that never asked for anything does not hold up the end', async () => {
  const accepted = Promise.withResolvers<void>();
  const { server, port, close } = await listen(() => {}, place);
  server.once('connection', () => accepted.resolve());
  const socket = connect(port, '127.0.0.1');
  await accepted.promise;
  const ended = once(socket, 'close');
  await close(longerThanTheTest);
  await ended;
});

test('a request that runs is answered before the end, also on a connection that is kept alive', async () => {
  const asked = Promise.withResolvers<() => void>();
  const { url, close } = await listen((_, response) => asked.resolve(() => response.end('done')), place);
  const answer = fetch(url).then((response) => response.text());
  const respond = await asked.promise;
  const closed = close(longerThanTheTest);
  respond();
  expect(await answer).toBe('done');
  await closed;
});

test('a connection between two requests is kept for longer than load balancers keep theirs, and clients are told', async () => {
  const { url, close } = await listen((_, response) => response.end('done'), place);
  const response = await fetch(url);
  expect(response.headers.get('keep-alive')).toBe('timeout=65');
  expect(await response.text()).toBe('done');
  await close(longerThanTheTest);
});
