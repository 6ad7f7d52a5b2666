import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parcelV1 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

test('a closing gateway is not ready, and still answers requests', async () => {
  const { gateway, endpoint, post, pack, services } = await startGateway({ drainSeconds: 600 });
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const underWay = post('query @after(position: "2") { parcels { totalCount } }');
  await expect.poll(() => services.reads.length).toBe(1);

  const closed = gateway.close();
  const ready = await fetch(`${gateway.url}/health/ready`);
  expect([ready.status, ready.headers.get('connection')]).toEqual([503, 'close']);
  expect(await ready.json()).toMatchObject({ ready: false, stopping: true });
  // Each response closes its connection: of earlier requests, of new requests, from every part of the gateway.
  const sent = await post('mutation { packParcel(input: { parcelId: "c" }) { position } }');
  expect([sent.status, sent.headers.get('connection')]).toEqual([200, 'close']);
  const got = await fetch(`${endpoint}?query={__typename}`, { headers: { 'apollo-require-preflight': 'true' } });
  expect([got.status, got.headers.get('connection')]).toEqual([200, 'close']);
  services.release(parcelV1);
  const answered = await underWay;
  expect(answered.data).toEqual({ parcels: { totalCount: 3 } });
  expect(answered.headers.get('connection')).toBe('close');

  // A second close waits for nothing.
  await gateway.close();
  await closed;
  await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
});

test('a closing gateway answers for the configured time', async () => {
  const { gateway } = await startGateway({ drainSeconds: 0.3 });
  const start = performance.now();
  await gateway.close();
  expect(performance.now() - start).toBeGreaterThan(290);
});

test('subscriptions stay open as long as requests are answered', async () => {
  const { gateway, endpoint, pack } = await startGateway({ drainSeconds: 600 });
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { parcel(parcelId: "a") { parcelId } }' }),
  });
  const closed = gateway.close();
  await pack({ a: {} });
  let text = '';
  for await (const bytes of response.body ?? []) {
    text += new TextDecoder().decode(bytes);
    if (text.includes('"parcelId":"a"')) void gateway.close();
  }
  await closed;
  expect(text).not.toContain('event: complete');
});

const subscription = JSON.stringify({ query: 'subscription { parcel(parcelId: "a") { weight } }' });
const plainBody = `content-length: ${subscription.length}\r\n\r\n${subscription}`;
const chunkedBody = `transfer-encoding: chunked\r\n\r\n${subscription.length.toString(16)}\r\n${subscription}\r\n0\r\n\r\n`;

test.for([
  ['server-sent events', 'HTTP/1.1', 'text/event-stream', plainBody],
  ['server-sent events behind a proxy that speaks HTTP/1.0', 'HTTP/1.0', 'text/event-stream', plainBody],
  ['server-sent events requested by a chunked body', 'HTTP/1.1', 'text/event-stream', chunkedBody],
  ['server-sent events that are accepted last', 'HTTP/1.1', 'application/json, text/event-stream', plainBody],
] as const)('%s end without a complete message: clients reconnect elsewhere', async ([, version, accept, body]) => {
  const { gateway, services, logged, pack } = await startGateway();
  const socket = connect(gateway.port, '127.0.0.1').setEncoding('utf8');
  onTestFinished(() => void socket.destroy());
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.write(
    `POST /graphql ${version}\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: ${accept}\r\n${body}`,
  );
  await expect.poll(() => text).toContain('{"data":{"parcel":null}}');
  await pack({ a: {} });
  await expect.poll(() => text).toContain('{"data":{"parcel":{"weight":"1.500"}}}');
  const before = text.length;
  const ended = once(socket, 'close');
  await gateway.close();
  await ended;
  // Comments, and the end of the last chunk.
  expect(text.slice(before).replaceAll(/3\r\n:\n\n\r\n|:\n\n/g, '')).toMatch(/^(?:0\r\n\r\n)?$/);
  expect([services.open, services.subscribed]).toEqual([0, 0]);
  expect(logged.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});
