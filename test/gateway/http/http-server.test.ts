import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { listen } from '../../../src/gateway/http/http-server.ts';
import { sendShutdownResponse } from '../../../src/gateway/http/shutdown-response.ts';
import { beginMutation } from '../../../src/gateway/requests/unknown-outcome.ts';

const longerThanTheTest = 3_600_000;

const place = { host: '127.0.0.1', port: 0, requestTimeout: 30_000 };

test('a connection without a request does not delay the close', async () => {
  const accepted = Promise.withResolvers<void>();
  const { server, port, close } = await listen(() => {}, place);
  server.once('connection', () => accepted.resolve());
  const socket = connect(port, '127.0.0.1');
  await accepted.promise;
  const ended = once(socket, 'close');
  await close(longerThanTheTest, sendShutdownResponse);
  await ended;
});

test('a running request gets its response before the close, also on a keep-alive connection', async () => {
  const asked = Promise.withResolvers<() => void>();
  const { url, close } = await listen((_, response) => asked.resolve(() => response.end('done')), place);
  const answer = fetch(url).then((response) => response.text());
  const respond = await asked.promise;
  const closed = close(longerThanTheTest, sendShutdownResponse);
  respond();
  expect(await answer).toBe('done');
  await closed;
});

test('an idle connection is kept longer than load balancers keep theirs, and the response says how long', async () => {
  const { url, close } = await listen((_, response) => response.end('done'), place);
  const response = await fetch(url);
  expect(response.headers.get('keep-alive')).toBe('timeout=65');
  expect(await response.text()).toBe('done');
  await close(longerThanTheTest, sendShutdownResponse);
});

test('a mutation that outlasts the close gets OUTCOME_UNKNOWN; another or an incomplete request gets a refusal', async () => {
  const [begun, readWhole, readHalf] = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const { url, port, close } = await listen((req, res) => {
    if (req.url === '/half') return void req.once('data', () => readHalf?.resolve());
    if (req.url === '/mutation') beginMutation(res);
    req.resume().once('end', () => (req.url === '/mutation' ? begun : readWhole)?.resolve());
  }, place);
  const mutation = fetch(`${url}/mutation`, { method: 'POST', body: 'whole' });
  const query = fetch(`${url}/query`, { method: 'POST', body: 'whole' });
  const dripping = connect(port, '127.0.0.1');
  dripping.write('POST /half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf');
  const half = text(dripping);
  await Promise.all([begun?.promise, readWhole?.promise, readHalf?.promise]);
  await close(0, sendShutdownResponse);
  for (const [answer, code] of [
    [mutation, 'OUTCOME_UNKNOWN'],
    [query, 'RATE_LIMITED'],
  ] as const) {
    const response = await answer;
    expect([response.status, response.headers.get('connection')]).toEqual([503, 'close']);
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code } }] });
  }
  expect(await half).toMatch(/^HTTP\/1.1 503 .*"RATE_LIMITED"/s);
});
