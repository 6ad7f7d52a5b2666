import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createSchemaSource } from '../../../src/gateway/operations/served-schema.ts';
import type { VersionMap } from '../../../src/projections/projection/version-map.ts';
import { active, building } from '../../schema/in-memory-services.ts';
import { courierDayV1, parcelV1 } from '../../schema/parcels.ts';
import { startGateway } from '../gateway-under-test.ts';

test('maps that differ only in what is active share a schema, and are served at once', () => {
  let map: VersionMap = { revision: 'parcel@1?', shape: 'parcel@1', served: new Map([['parcel', building(parcelV1)]]) };
  let changed = () => {};
  let builds = 0;
  const source = createSchemaSource({
    versions: {
      current: () => map,
      pinned: () => map,
      onChange(listener) {
        changed = listener;
        return () => {};
      },
    },
    options() {
      builds++;
      return { commands: [], maxPageSize: 100 };
    },
    logger: pino({ level: 'silent' }),
  });
  const { schema } = source.current();
  map = { revision: 'parcel@1', shape: 'parcel@1', served: new Map([['parcel', active(parcelV1)]]) };
  changed();
  expect(source.current().versions).toBe(map);
  expect(source.current().schema).toBe(schema);
  expect(builds).toBe(1);
  source.close();
});

test('an operation under a shared schema sees what is active in its own map, compiled or executed', async () => {
  const { post, pack, services } = await startGateway({ served: [building(parcelV1), active(courierDayV1)] });
  await pack({ a: {} });
  const query = '{ parcel(parcelId: "a") { parcelId } parcels { totalCount } }';
  const codes = async () => (await post(query)).errors?.map(({ extensions }) => extensions.code);
  expect(await codes()).toContain('PROJECTION_NOT_READY');
  services.serve(active(parcelV1), active(courierDayV1));
  expect(await post(query)).toMatchObject({ data: { parcel: { parcelId: 'a' }, parcels: { totalCount: 1 } } });
  services.serve(building(parcelV1), active(courierDayV1));
  expect(await codes()).toContain('PROJECTION_NOT_READY');
});
