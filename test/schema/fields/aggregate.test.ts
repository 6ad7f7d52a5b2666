import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { active, building, versionMap } from '../in-memory-services.ts';
import { parcel, parcelV1 } from '../parcels.ts';
import { type SchemaUnderTest, schemaUnderTest } from '../schema-under-test.ts';

/** Four parcels: two fragile ones, and two days. */
async function fourParcels(): Promise<SchemaUnderTest> {
  const tested = schemaUnderTest();
  await tested.pack({
    a: { pieces: 1, weight: '1.5', grams: '9007199254740993', fragile: true, packedOn: '2026-01-30', insuredFor: '10' },
    b: { pieces: 2, weight: '0.125', grams: '9007199254740993', fragile: true, packedOn: '2026-01-30' },
    c: { pieces: 4, weight: '2', grams: '-1', packedOn: '2026-02-01' },
    d: { pieces: 4, weight: '20', grams: '0', packedOn: '2026-02-01', status: 'Lost' },
  });
  await tested.services.append(parcel, 'a', {
    type: 'ParcelShipped',
    payload: { courier: 'Ada', at: '2026-02-01T08:59:59.5Z' },
  });
  return tested;
}

test('an aggregate has exact sums, averages and extremes of all matching rows', async () => {
  const { answer } = await fourParcels();
  const fields = `
    count
    sum { pieces grams weight insuredFor }
    avg { pieces grams weight }
    min { parcelId weight grams packedOn courier insuredFor }
    max { parcelId weight shippedAt }`;
  expect(await answer(`{ all: parcelsAggregate { ${fields} } }`)).toEqual({
    all: {
      count: 4,
      sum: { pieces: '11', grams: '18014398509481985', weight: '23.625', insuredFor: '10.00' },
      avg: { pieces: '2.7500', grams: '4503599627370496.2500', weight: '5.9062500' },
      min: {
        parcelId: 'a',
        weight: '0.125',
        grams: '-1',
        packedOn: '2026-01-30',
        courier: 'Ada',
        insuredFor: '10.00',
      },
      max: { parcelId: 'd', weight: '20.000', shippedAt: '2026-02-01T08:59:59.500Z' },
    },
  });
  expect(await answer('{ parcelsAggregate(where: { fragile: { eq: true } }) { count max { pieces } } }')).toEqual({
    parcelsAggregate: { count: 2, max: { pieces: 2 } },
  });
});

test('without matching rows, counts are 0 and all other values null', async () => {
  const { answer } = schemaUnderTest();
  expect(
    await answer(
      '{ parcelsAggregate { count countDistinct { pieces } sum { pieces } avg { pieces } max { parcelId } } }',
    ),
  ).toEqual({
    parcelsAggregate: {
      count: 0,
      countDistinct: { pieces: 0 },
      sum: { pieces: null },
      avg: { pieces: null },
      max: { parcelId: null },
    },
  });
  expect(await answer('{ parcelsGrouped(by: [status]) { count } }')).toEqual({ parcelsGrouped: [] });
});

test('groups have a key of columns and parts of time', async () => {
  const { answer } = await fourParcels();
  const { byDay, byMonth, byHour } = await answer(`{
    byDay: parcelsGrouped(by: [packedOn, fragile]) { key { packedOn fragile status } count }
    byMonth: parcelsGrouped(by: [packedOnMonth], orderBy: [{ key: { packedOnMonth: DESC } }]) { key { packedOnMonth } sum { pieces } }
    byHour: parcelsGrouped(by: [shippedAtHour, shippedAtDay, shippedAtMonth]) { key { shippedAtHour shippedAtDay shippedAtMonth } }
  }`);
  expect(byDay).toEqual([
    { key: { packedOn: '2026-01-30', fragile: true, status: null }, count: 2 },
    { key: { packedOn: '2026-02-01', fragile: false, status: null }, count: 2 },
  ]);
  expect(byMonth).toEqual([
    { key: { packedOnMonth: '2026-02-01' }, sum: { pieces: '8' } },
    { key: { packedOnMonth: '2026-01-01' }, sum: { pieces: '3' } },
  ]);
  expect(byHour).toEqual([
    { key: { shippedAtHour: '2026-02-01T08:00:00.000Z', shippedAtDay: '2026-02-01', shippedAtMonth: '2026-02-01' } },
    { key: { shippedAtHour: null, shippedAtDay: null, shippedAtMonth: null } },
  ]);
});

test.each([
  ['by: [pieces]', '1:1 2:1 4:2'],
  ['by: [pieces], orderBy: [{ count: DESC }]', '4:2 1:1 2:1'],
  ['by: [pieces], orderBy: [{ sum: { weight: DESC } }]', '4:2 1:1 2:1'],
  ['by: [pieces], orderBy: [{ avg: { weight: ASC } }]', '2:1 1:1 4:2'],
  ['by: [pieces], orderBy: [{ max: { insuredFor: DESC } }, { key: { pieces: DESC } }]', '1:1 4:2 2:1'],
  ['by: [pieces], orderBy: [{ key: { pieces: DESC } }], first: 2', '4:2 2:1'],
  ['by: [pieces], having: { count: { gte: 2 } }', '4:2'],
  ['by: [pieces], having: { sum: { weight: { gt: "0.125", lt: "22" } } }', '1:1'],
  ['by: [pieces], having: { avg: { grams: { lt: "0" } } }', '4:2'],
  ['by: [pieces], having: { min: { weight: { lte: 1.50 } }, sum: { grams: { eq: "9007199254740993" } } }', '1:1 2:1'],
  ['by: [pieces], having: { max: { insuredFor: { ne: "10" } } }', '2:1 4:2'],
  ['by: [pieces], having: { countDistinct: { status: { gt: 1 } } }', '4:2'],
  ['by: [pieces], orderBy: [{ countDistinct: { parcelId: DESC } }]', '4:2 1:1 2:1'],
  ['by: [pieces, pieces], where: { status: { ne: Lost } }', '1:1 2:1 4:1'],
  ['by: []', 'null:4'],
])('parcelsGrouped(%s) gives %s', async (args, expected) => {
  const { answer } = await fourParcels();
  const { parcelsGrouped } = await answer(`{ parcelsGrouped(${args}) { key { pieces } count } }`);
  const groups = parcelsGrouped as { key: { pieces: number }; count: number }[];
  expect(groups.map(({ key, count }) => `${key.pieces}:${count}`).join(' ')).toBe(expected);
});

test.each([
  ['by: [pieces], first: 51', "'first' is 51; a page has at most 50 rows. Ask for the next page."],
  ['by: [pieces], orderBy: [{ key: { status: ASC } }]', "'orderBy' names the key 'status', but 'by' does not."],
  ['by: [pieces], having: { count: null }', "'having.count' is null; leave it out instead."],
  ['by: [pieces], having: { sum: { weight: { gt: null } } }', "'having.sum.weight.gt' is null; leave it out instead."],
  ['by: [note]', 'Value "note" does not exist in "ParcelGroupBy" enum.'],
  ['by: [pieces], orderBy: [{ count: ASC, max: { pieces: ASC } }]', 'must specify exactly one key'],
])('parcelsGrouped(%s) is refused', async (args, message) => {
  const { errors } = await (await fourParcels()).run(`{ parcelsGrouped(${args}) { count } }`);
  expect(errors?.[0]?.message).toContain(message);
});

test('only what is selected is computed, in one read for each field', async () => {
  const { answer, services } = await fourParcels();
  await answer(`query ($no: Boolean = false) {
    parcelsAggregate { sum { pieces ...Weight } max @include(if: $no) { weight } }
    parcelsGrouped(by: [status]) { key { status } avg { __typename pieces } }
  } fragment Weight on ParcelAggregateSum { heavy: weight }`);
  expect(services.reads).toEqual([
    { kind: 'aggregate', version: 'parcel@1', measures: ['sum weight', 'sum pieces'] },
    { kind: 'aggregate', version: 'parcel@1', measures: ['avg pieces'] },
  ]);
});

test('an aggregate waits for the demanded position, and fails if a version is not active', async () => {
  const tested = await fourParcels();
  await tested.answer('query @after(position: "2") { parcelsAggregate { count } parcelsGrouped(by: []) { count } }');
  expect(tested.services.reads.map(({ kind }) => kind)).toEqual(['waitFor', 'aggregate', 'aggregate']);
  const { errors } = await schemaUnderTest([building(parcelV1)]).run('{ parcelsAggregate { count } }');
  expect(errors?.[0]?.message).toContain('parcel@1 is building and not active yet');
});

test('a table without numbers has a count and extremes; a column keeps its name before a part of time', () => {
  const projection = defineProjection({
    name: 'visit',
    version: 1,
    events: defineEvents('visit', { Visited: z.object({}) }),
    table: {
      id: t.uuid().primaryKey(),
      at: t.timestamptz().index(),
      atDay: t.boolean().index(),
      null: t.boolean().index(),
    },
    key: (event) => event.streamId,
    evolve: { Visited: () => null },
  });
  const schema = buildSchema({ versions: versionMap([active(projection)]), commands: [], maxPageSize: 50 });
  const fieldsOf = (name: string) => {
    const type = schema.getType(name);
    return type && 'getFields' in type
      ? Object.values(type.getFields()).map(({ name, type }) => `${name}: ${type}`)
      : undefined;
  };
  expect(fieldsOf('VisitAggregate')).toEqual([
    'count: Int!',
    'countDistinct: VisitAggregateCountDistinct!',
    'min: VisitAggregateExtreme!',
    'max: VisitAggregateExtreme!',
  ]);
  expect(fieldsOf('VisitGroupKey')).toEqual([
    'id: UUID',
    'at: DateTime',
    'atHour: DateTime',
    'atMonth: Date',
    'atDay: Boolean',
  ]);
});
