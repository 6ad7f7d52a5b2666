import { expect, test } from 'vitest';
import { active } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcelV1, parcelV2 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

const ask = '{ parcel(parcelId: "a") { weight grams } }';

test('a client that pins a version gets its responses, with a deprecation header', async () => {
  const { post, pack, services } = await startGateway({ served: [active(parcelV2), active(courierDayV1)] });
  services.maintained = [parcelV1, parcelV2];
  await pack({ a: { weight: '11' } });
  const pinned = await post(ask, {}, { 'refold-pin': 'parcel@1' });
  expect(pinned.data).toEqual({ parcel: { weight: '11.000', grams: '1500' } });
  expect(pinned.headers.get('deprecation')).toBe(`@${Date.parse('2026-01-31T00:00:00Z') / 1000}`);
  expect(pinned.headers.get('refold-deprecated')).toBe('parcel@1');
  expect(pinned.headers.get('sunset')).toBeNull();
  // All other clients use the highest version, and get no such header.
  const others = await post('{ parcel(parcelId: "a") { weight heavy } }');
  expect(others.data).toEqual({ parcel: { weight: '11.0000', heavy: true } });
  expect(others.headers.get('deprecation')).toBeNull();
});

test('a version with a sunset day names it in a header', async () => {
  const { post, services } = await startGateway({ served: [active(parcelV2), active(courierDayV1)] });
  services.maintained = [{ ...parcelV1, sunset: new Date('2027-01-31') }];
  const { headers } = await post(ask, {}, { 'refold-pin': 'parcel@1' });
  expect(headers.get('sunset')).toBe('Sun, 31 Jan 2027 00:00:00 GMT');
});

test('a pin of the served version changes nothing', async () => {
  const { post, pack, services } = await startGateway({ served: [active(parcelV2), active(courierDayV1)] });
  services.maintained = [parcelV2, courierDayV1];
  await pack({ a: {} });
  const { data, headers } = await post(
    '{ parcel(parcelId: "a") { heavy } }',
    {},
    { 'refold-pin': 'parcel@2, courier_day@1' },
  );
  expect([data, headers.get('deprecation')]).toEqual([{ parcel: { heavy: false } }, null]);
});

test.each([
  'parcel@7',
  'parcel@x',
  'parcel',
  'parcel@0',
  '',
  'parcel@1;drop',
  'parcel@1,parcel@2',
  `${'a@1,'.repeat(30)}b@1`,
  '__proto__@1',
])("a pin that can't be is refused: %j", async (pin) => {
  const { post, services } = await startGateway({ served: [active(parcelV2), active(courierDayV1)] });
  services.maintained = [parcelV1, parcelV2];
  const answer = await post('{ __typename }', {}, { 'refold-pin': pin });
  if (pin === '__proto__@1') expect(answer.errors ?? []).toHaveLength(1);
  expect(answer.errors?.map(({ extensions }) => extensions.code)).toEqual(['BAD_USER_INPUT']);
});
