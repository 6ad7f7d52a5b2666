import { expect, test } from 'vitest';
import { active, building } from '../in-memory-services.ts';
import { parcel, parcelV1, parcelV2 } from '../parcels.ts';
import { next, schemaUnderTest } from '../schema-under-test.ts';

const weigh = (weight: string) => ({ type: 'ParcelWeighed', payload: { weight } });

test('a row is sent in its current state, then after every change, and as null when it is deleted', async () => {
  const { subscribe, pack, services } = schemaUnderTest();
  const updates = await subscribe('subscription { parcel(parcelId: "a") { weight pieces } }');
  expect(await next(updates)).toEqual({ parcel: null });
  await pack({ a: {} });
  expect(await next(updates)).toEqual({ parcel: { weight: '1.500', pieces: 2 } });
  await services.append(parcel, 'a', weigh('2'));
  expect(await next(updates)).toEqual({ parcel: { weight: '2.000', pieces: 2 } });
  await services.append(parcel, 'a', { type: 'ParcelForgotten', payload: {} });
  expect(await next(updates)).toEqual({ parcel: null });
  await updates.return(undefined);
  expect(services.subscribed).toBe(0);
});

test('a list is sent completely, then as rows that entered, changed and left it', async () => {
  const { subscribe, pack, services } = schemaUnderTest();
  await pack({ a: { weight: '1' }, b: { weight: '3' } });
  const updates = await subscribe(`subscription {
    parcels(where: { weight: { gte: 2 } }, orderBy: [{ weight: DESC }], first: 2) {
      position snapshot { parcelId weight } entered { parcelId } changed { parcelId weight } left { parcelId }
    }
  }`);
  const nothing = { snapshot: null, entered: [], changed: [], left: [] };
  expect(await next(updates)).toEqual({
    parcels: { ...nothing, position: '2', snapshot: [{ parcelId: 'b', weight: '3.000' }] },
  });
  await services.append(parcel, 'a', weigh('4'));
  expect(await next(updates)).toEqual({ parcels: { ...nothing, position: '3', entered: [{ parcelId: 'a' }] } });
  await services.append(parcel, 'b', weigh('5'));
  expect(await next(updates)).toEqual({
    parcels: { ...nothing, position: '4', changed: [{ parcelId: 'b', weight: '5.000' }] },
  });
  await services.append(parcel, 'a', weigh('1'));
  expect(await next(updates)).toEqual({ parcels: { ...nothing, position: '5', left: [{ parcelId: 'a' }] } });
  await updates.return(undefined);
});

test('a subscription continues with the rows of another version that has the same columns', async () => {
  const { subscribe, pack, services } = schemaUnderTest([active(parcelV1)]);
  await pack({ a: { weight: '1.25' } });
  const updates = await subscribe('subscription { parcel(parcelId: "a") { __typename weight pieces } }');
  expect(await next(updates)).toEqual({ parcel: { __typename: 'Parcel', weight: '1.250', pieces: 2 } });
  services.serve(active(parcelV2));
  await services.append(parcel, 'a', weigh('7.5'));
  expect(await next(updates)).toEqual({ parcel: { __typename: 'Parcel', weight: '7.500', pieces: 2 } });
  await updates.return(undefined);
});

test("a version that is not active can't be subscribed to", async () => {
  const { subscribe } = schemaUnderTest([building(parcelV1)]);
  for (const field of ['parcel(parcelId: "a") { weight }', 'parcels { position }']) {
    await expect(subscribe(`subscription { ${field} }`)).rejects.toThrow('parcel@1 is building and not active yet');
  }
});

test.each([
  ['parcels(first: 51)', "'first' is 51; a page has at most 50 rows. Ask for the next page."],
  ['parcels(where: { pieces: null })', "'where.pieces' is null; leave it out instead."],
])('%s is refused before the subscription starts', async (field, message) => {
  const { subscribe, services } = schemaUnderTest();
  await expect(subscribe(`subscription { ${field} { position } }`)).rejects.toThrow(message);
  expect(services.subscribed).toBe(0);
});

test('a change feed sends all rows first, then changes one by one, and a deleted row by its key', async () => {
  const { subscribe, pack, services } = schemaUnderTest();
  await pack({ a: { weight: '1' } });
  const updates = await subscribe(`subscription {
    parcelChanges { position cursor reset lagged changes { operation key { parcelId } row { weight } position } }
  }`);
  expect(await next(updates)).toEqual({
    parcelChanges: {
      position: '1',
      cursor: '1@1.1',
      reset: true,
      lagged: null,
      changes: [{ operation: 'UPSERT', key: { parcelId: 'a' }, row: { weight: '1.000' }, position: '1' }],
    },
  });
  await services.append(parcel, 'a', { type: 'ParcelForgotten', payload: {} });
  expect(await next(updates)).toEqual({
    parcelChanges: {
      position: '2',
      cursor: '2@1.1',
      reset: false,
      lagged: null,
      changes: [{ operation: 'DELETE', key: { parcelId: 'a' }, row: null, position: '2' }],
    },
  });
  await updates.return(undefined);
});

test.each([
  ['"yesterday"', "'since' is not a cursor. Expected the cursor of a message, such as '1042.9f3c21ab@2.1'"],
  ['"1042@2"', "'since' is not a cursor."],
  ['"9999999999999999"', "'since' is not a cursor."],
])('changes since %s are refused', async (since, message) => {
  const { subscribe } = schemaUnderTest();
  await expect(subscribe(`subscription { parcelChanges(since: ${since}) { position } }`)).rejects.toThrow(message);
});
