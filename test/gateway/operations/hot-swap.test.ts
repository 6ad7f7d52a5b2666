import { expect, test } from 'vitest';
import { active } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcel, parcelV1, parcelV2 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

test('the schema follows the version map without a restart, back and forth', async () => {
  const { post, pack, services } = await startGateway();
  await pack({ a: { weight: '11' } });
  const query = '{ parcel(parcelId: "a") { heavy } }';
  const codes = async () => (await post(query)).errors?.map(({ extensions }) => extensions.code);
  expect(await codes()).toEqual(['GRAPHQL_VALIDATION_FAILED']);
  services.serve(active(parcelV2), active(courierDayV1));
  expect((await post(query)).data).toEqual({ parcel: { heavy: true } });
  services.serve(active(parcelV1), active(courierDayV1));
  expect(await codes()).toEqual(['GRAPHQL_VALIDATION_FAILED']);
});

test('an operation that waits while another version becomes active uses the version that it began with', async () => {
  const { post, pack, services } = await startGateway();
  await pack({ a: {} });
  services.hold(parcelV1);
  await pack({ b: {} });
  const waiting = post('query @after(position: "2") { parcel(parcelId: "b") { weight grams } parcels { totalCount } }');
  await expect.poll(() => services.reads.length).toBe(1);
  services.serve(active(parcelV2), active(courierDayV1));
  services.release(parcelV1);
  expect((await waiting).data).toEqual({ parcel: { weight: '1.500', grams: '1500' }, parcels: { totalCount: 2 } });
  expect(new Set(services.reads.map((read) => read.version))).toEqual(new Set(['parcel@1']));
});

test('while versions flip under running queries, none fails and none mixes two versions', async () => {
  const { post, pack, services } = await startGateway();
  await pack({ a: { weight: '1' }, b: { weight: '2' } });
  const maps = [[active(parcelV1), active(courierDayV1)], [active(parcelV2)]] as const;
  // In version 1, weights have three digits after the point; in version 2, four.
  const query = `{
    first: parcel(parcelId: "a") { weight } parcels { nodes { weight } } last: parcel(parcelId: "b") { weight }
  }`;
  let flips = 0;
  const seen = new Set<number>();
  // An odd number: if all run at the same pace, they leave the version maps in turn.
  const askers = Array.from({ length: 7 }, async () => {
    for (let round = 0; round < 60; round++) {
      if (round % 3 === 0) services.serve(...(maps[++flips % 2] as (typeof maps)[0]));
      const { data, errors } = await post(query);
      expect(errors).toBeUndefined();
      const digits = new Set([...JSON.stringify(data).matchAll(/\.(\d+)"/g)].map(([, digits]) => digits?.length));
      expect(digits.size).toBe(1);
      for (const length of digits) seen.add(length ?? 0);
    }
  });
  await Promise.all(askers);
  expect(seen).toEqual(new Set([3, 4]));
  expect(services.open).toBe(0);
});

test("if the schema for new versions can't be built, the old versions keep answering", async () => {
  const { post, pack, services, logged } = await startGateway({ served: [active(parcelV1)] });
  await pack({ a: {} });
  const clash = { ...courierDayV1, graphql: { ...courierDayV1.graphql, type: 'Parcel' } };
  services.serve(active(parcelV1), active(clash));
  expect((await post('{ parcel(parcelId: "a") { weight } }')).data).toEqual({ parcel: { weight: '1.500' } });
  expect(logged).toEqual([
    expect.objectContaining({ msg: 'could not build a schema for the new versions; still serving the old ones' }),
  ]);
  services.serve(active(parcelV1), active(courierDayV1));
  await services.append(parcel, 'a', {
    type: 'ParcelShipped',
    payload: { courier: 'Ada', at: '2026-02-01T08:00:00Z' },
  });
  expect((await post('{ courierDays { totalCount } }')).data).toEqual({ courierDays: { totalCount: 1 } });
});
