import { getOperationAST, parse } from 'graphql';
import { expect, test } from 'vitest';
import { defineProjection, t } from '../../../src/index.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { compileOperation, conditionNames } from '../../../src/schema/compile/compile-operation.ts';
import { active, building, versionMap } from '../in-memory-services.ts';
import { allCommands, courierDayV1, parcel, parcelV1 } from '../parcels.ts';

/** SQL created its documents: times and numbers have other spellings, which reading normalizes. */
const sizes = defineProjection({
  name: 'sizes',
  version: 1,
  events: parcel,
  table: { parcelId: t.text().primaryKey(), size: t.object({ width: t.integer() }) },
  evolveSql: {
    events: ['ParcelPacked'],
    rows: `select stream_id as parcel_id, '{"width": 1}'::jsonb as size from batch group by stream_id`,
    merge: { size: 'last' },
  },
});
const served = [active(parcelV1), building(courierDayV1), active(sizes)];
const versions = versionMap(served);
const schema = buildSchema({ versions, commands: allCommands, maxPageSize: 50 });

function compile(source: string, variables: Record<string, unknown> = {}) {
  const document = parse(source);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('no operation');
  return compileOperation({ schema, versions, document, operation, conditions: variables }).query(variables);
}

test.each([
  ['It is a mutation.', 'mutation { packParcel(input: { parcelId: "a" }) { position } }'],
  ['The operation has a directive.', 'query @after(position: "1") { parcels { totalCount } }'],
  ['It has the directive @defer.', '{ ... @defer { parcels { totalCount } } }'],
  ["'_meta' of Query is resolved.", '{ _meta { projections { name } } }'],
  ["'node' of Query is resolved.", '{ node(id: "a") { id } }'],
  ["'__schema' of Query is resolved.", '{ __schema { queryType { name } } }'],
  [
    'courier_day@1 is not active.',
    '{ courierDay(courier: "Ada", day: "2026-02-01", hub: North, lane: 1) { parcels } }',
  ],
  ["'size' of sizes@1 is a document that evolveSql has made.", '{ sizes(parcelId: "a") { size { width } } }'],
  ['It has a fragment on Parcels.', '{ ...A } fragment A on Parcels { a }'],
  [
    'It selects more than 500 fields.',
    `{ ${Array.from({ length: 501 }, (_, index) => `a${index}: __typename`).join(' ')} }`,
  ],
])('%s', (reason, source) => {
  expect(() => compile(source)).toThrow(reason);
});

test('only fields that directives include are read, each once', () => {
  const source = `query ($yes: Boolean!) {
    parcel(parcelId: "a") { weight ...A @skip(if: $yes) ... on Parcel { weight note @include(if: $yes) } }
  } fragment A on Parcel { pieces }`;
  expect(conditionNames(parse(source))).toEqual(['yes']);
  const columns = (yes: boolean) => compile(source, { yes }).reads.map((read) => 'columns' in read && read.columns);
  expect(columns(true)).toEqual([['weight', 'note']]);
  expect(columns(false)).toEqual([['weight', 'pieces']]);
});
