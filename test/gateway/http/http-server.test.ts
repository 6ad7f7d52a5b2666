import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { listen } from '../../../src/gateway/http/http-server.ts';
import { lastWord } from '../../../src/gateway/http/last-word.ts';

const longerThanTheTest = 3_600_000;

const place = { host: '127.0.0.1', port: 0, requestTimeout: 30_000 };

test('a connection without a request does not delay the close', async () => {
  const accepted = Promise.withResolvers<void>();
  const { server, port, close } = await listen(() => {}, place);
  server.once('connection', () => accepted.resolve());
  const socket = connect(port, '127.0.0.1');
  await accepted.promise;
  const ended = once(socket, 'close');
  await close(longerThanTheTest, lastWord);
  await ended;
});

test('a running request gets its response before the close, also on a keep-alive connection', async () => {
  const asked = Promise.withResolvers<() => void>();
  const { url, close } = await listen((_, response) => asked.resolve(() => response.end('done')), place);
  const answer = fetch(url).then((response) => response.text());
  const respond = await asked.promise;
  const closed = close(longerThanTheTest, lastWord);
  respond();
  expect(await answer).toBe('done');
  await closed;
});

test('an idle connection is kept longer than load balancers keep theirs, and the response says how long', async () => {
  const { url, close } = await listen((_, response) => response.end('done'), place);
  const response = await fetch(url);
  expect(response.headers.get('keep-alive')).toBe('timeout=65');
  expect(await response.text()).toBe('done');
  await close(longerThanTheTest, lastWord);
});

test('a request that outlasts the close gets OUTCOME_UNKNOWN; an incomplete request gets a refusal', async () => {
  const [readWhole, readHalf] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { url, port, close } = await listen((req) => {
    if (req.url === '/whole') req.resume().once('end', readWhole.resolve);
    else req.once('data', () => readHalf.resolve());
  }, place);
  const whole = fetch(`${url}/whole`, { method: 'POST', body: 'whole' });
  const dripping = connect(port, '127.0.0.1');
  dripping.write('POST /half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf');
  const half = text(dripping);
  await Promise.all([readWhole.promise, readHalf.promise]);
  await close(0, lastWord);
  const response = await whole;
  expect([response.status, response.headers.get('connection')]).toEqual([503, 'close']);
  expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'OUTCOME_UNKNOWN' } }] });
  expect(await half).toMatch(/^HTTP\/1.1 503 .*"RATE_LIMITED"/s);
});
