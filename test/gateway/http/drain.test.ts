import { expect, test } from 'vitest';
import { parcelV1 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

test('from the moment that it is told to close it is not ready, and answers what still comes', async () => {
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
  // Each answer closes its connection: of what was sent before, of what comes now, of whoever of the gateway answers.
  const sent = await post('mutation { packParcel(input: { parcelId: "c" }) { position } }');
  expect([sent.status, sent.headers.get('connection')]).toEqual([200, 'close']);
  const got = await fetch(`${endpoint}?query={__typename}`, { headers: { 'apollo-require-preflight': 'true' } });
  expect([got.status, got.headers.get('connection')]).toEqual([200, 'close']);
  services.release(parcelV1);
  const answered = await underWay;
  expect(answered.data).toEqual({ parcels: { totalCount: 3 } });
  expect(answered.headers.get('connection')).toBe('close');

  // Told once more, it waits for nobody else.
  await gateway.close();
  await closed;
  await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
});

test('it answers for so long as it was told', async () => {
  const { gateway } = await startGateway({ drainSeconds: 0.3 });
  const start = performance.now();
  await gateway.close();
  expect(performance.now() - start).toBeGreaterThan(290);
});

test('subscriptions live as long as requests are answered', async () => {
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
