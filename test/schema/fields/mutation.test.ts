import { printType } from 'graphql';
import { expect, test } from 'vitest';
import { defineProjection, t } from '../../../src/index.ts';
import { active, building } from '../in-memory-services.ts';
import { courierDayV1, parcel, parcelV1 } from '../parcels.ts';
import { schemaUnderTest } from '../schema-under-test.ts';

test("a payload has the command's position, its stream and the row that it changed", async () => {
  const { answer } = schemaUnderTest();
  expect(
    await answer(`mutation {
      packParcel(input: { parcelId: "a", weight: "2.25" }) { position streamId streamVersion parcel { weight pieces } courierDay { parcels } }
    }`),
  ).toEqual({
    packParcel: {
      position: '1.00000001',
      streamId: 'a',
      streamVersion: 1,
      parcel: { weight: '2.250', pieces: 1 },
      courierDay: null,
    },
  });
});

test('the payload has the changed row, including its own write', async () => {
  const { answer, services, pack } = schemaUnderTest();
  await pack({ a: {} });
  services.hold(courierDayV1);
  const shipping = answer(`mutation {
    shipParcel(input: { parcelId: "a", courier: "Ada" }) { courierDay { day parcels } }
  }`);
  services.release(courierDayV1);
  expect(await shipping).toEqual({ shipParcel: { courierDay: { day: '2026-01-31', parcels: 1 } } });
  expect(services.reads).toContainEqual({ kind: 'waitFor', version: 'courier_day@1', position: 2n });
});

test("a payload has fields for the rows that its command's events may change", () => {
  const scans = defineProjection({
    name: 'parcel_scan',
    version: 1,
    events: parcel,
    table: { parcelId: t.text().primaryKey() },
    evolveSql: { events: ['ParcelPacked'], rows: 'select stream_id as parcel_id from batch group by 1', merge: {} },
  });
  const { schema } = schemaUnderTest([active(parcelV1), active(courierDayV1), active(scans)]);
  const rowsOf = (payload: string) =>
    ['parcel', 'courierDay', 'parcelScan'].filter((row) =>
      printType(schema.getType(payload) as never).includes(`  ${row}: `),
    );
  // The first declares no events, so any event of its family is possible. Only PostgreSQL knows which rows a set-based fold changes.
  expect(rowsOf('PackParcelPayload')).toEqual(['parcel', 'courierDay']);
  expect(rowsOf('ShipParcelPayload')).toEqual(['parcel', 'courierDay']);
  // Its events change no courier's day.
  expect(rowsOf('LoseEverythingPayload')).toEqual(['parcel']);
});

test('one fragment selects the common fields of every payload', async () => {
  const { answer } = schemaUnderTest();
  expect(
    await answer(`mutation {
      packParcel(input: { parcelId: "a" }) { ...written }
      loseEverything { ...written }
    }
    fragment written on CommandPayload { streamId streamVersion position }`),
  ).toEqual({
    packParcel: { streamId: 'a', streamVersion: 1, position: '1.00000001' },
    loseEverything: { streamId: 'everything', streamVersion: 1, position: '2.00000002' },
  });
});

test("a command without events changes no row, and its payload has the stream's current position", async () => {
  const { answer, pack } = schemaUnderTest();
  await pack({ a: {} });
  const document =
    'mutation { shipParcel(input: { parcelId: "a", courier: "Ada" }) { position streamVersion parcel { status } } }';
  await answer(document);
  expect(await answer(document)).toEqual({ shipParcel: { position: '2', streamVersion: 2, parcel: null } });
});

test('the payload answers any query, including its own write', async () => {
  const { answer, services } = schemaUnderTest();
  services.hold(parcelV1);
  const packing = answer(`mutation {
    packParcel(input: { parcelId: "a" }) { query { parcels { totalCount nodes { parcelId } } parcel(parcelId: "a") { pieces } } }
  }`);
  services.release(parcelV1);
  expect(await packing).toEqual({
    packParcel: { query: { parcels: { totalCount: 1, nodes: [{ parcelId: 'a' }] }, parcel: { pieces: 1 } } },
  });
});

test('several commands of one operation run one after another', async () => {
  const { answer } = schemaUnderTest();
  expect(
    await answer(`mutation {
      first: packParcel(input: { parcelId: "a" }) { position query { parcels { totalCount } } }
      second: shipParcel(input: { parcelId: "a", courier: "Ada" }) { position parcel { status } }
      third: packParcel(input: { parcelId: "b" }) { position query { parcels { totalCount } } }
    }`),
  ).toEqual({
    first: { position: '1.00000001', query: { parcels: { totalCount: 1 } } },
    second: { position: '2.00000002', parcel: { status: 'Shipped' } },
    third: { position: '3.00000003', query: { parcels: { totalCount: 2 } } },
  });
});

test('a command runs even if a version is not active', async () => {
  const { run } = schemaUnderTest([building(parcelV1), active(courierDayV1)]);
  const { data, errors } = await run(
    'mutation { packParcel(input: { parcelId: "a" }) { position parcel { weight } } }',
  );
  expect(data).toEqual({ packParcel: { position: '1.00000001', parcel: null } });
  expect(errors?.map(({ path }) => path)).toEqual([['packParcel', 'parcel']]);
});

test('a command without input takes none', async () => {
  const { answer } = schemaUnderTest();
  expect(await answer('mutation { loseEverything { streamId } }')).toEqual({
    loseEverything: { streamId: 'everything' },
  });
});

test('defaults come from the validator, and null for an optional property is left out', async () => {
  const { answer, services } = schemaUnderTest();
  await answer(`mutation ($input: PackParcelInput!) { packParcel(input: $input) { position } }`, {
    input: { parcelId: 'a', pieces: null, remarks: null, fragile: null, weight: null },
  });
  expect(services.executed[0]?.input).toEqual({ parcelId: 'a', fragile: null });
});

test('expected version and idempotency key reach the command', async () => {
  const { answer, services } = schemaUnderTest();
  const document = `mutation ($version: Int, $key: String) {
    packParcel(input: { parcelId: "a" }, expectedVersion: $version, idempotencyKey: $key) { position }
  }`;
  const first = await answer(document, { version: 0, key: 'once' });
  expect(await answer(document, { version: 0, key: 'once' })).toEqual(first);
  expect(services.executed.map((execution) => execution.options)).toEqual([
    { expectedVersion: 0, idempotencyKey: 'once' },
    { expectedVersion: 0, idempotencyKey: 'once' },
  ]);
  await answer('mutation { loseEverything(expectedVersion: null, idempotencyKey: null) { position } }');
  expect(services.executed[2]?.options).toEqual({});
});

test.each([
  ['expectedVersion: -1', "'expectedVersion' is -1; it is 0 for no stream, or a version that was answered."],
  ['idempotencyKey: ""', "'idempotencyKey' has 1 to 200 characters."],
])('%s is refused', async (argument, message) => {
  const { run, services } = schemaUnderTest();
  const { errors } = await run(`mutation { loseEverything(${argument}) { position } }`);
  expect(errors?.[0]?.message).toBe(message);
  expect(services.executed).toEqual([]);
});
