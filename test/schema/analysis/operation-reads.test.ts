import { getOperationAST, parse } from 'graphql';
import { expect, test } from 'vitest';
import { needsSnapshot } from '../../../src/schema/analysis/operation-reads.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { versionMap } from '../in-memory-services.ts';

const versions = versionMap([]);
const served = { versions, schema: buildSchema({ versions, commands: [], maxPageSize: 50 }) };

test.each([
  ['{ parcel(parcelId: "a") { weight } }', false],
  ['{ parcels { nodes { weight } pageInfo { endCursor } } }', false],
  ['{ parcels { totalCount nodes { weight } } }', true],
  ['{ parcels { ...Count } } fragment Count on ParcelConnection { totalCount }', true],
  ['{ a: parcel(parcelId: "a") { weight } b: parcel(parcelId: "b") { weight } }', true],
  ['query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', true],
  ['query ($id: ID!) { node(id: $id) { id } }', false],
  ['{ __typename parcel(parcelId: "a") { weight } }', false],
  ['{ __schema { types { name } } }', false],
  ['{ ...Root } fragment Root on Query { parcel(parcelId: "a") { weight } parcels { nodes { weight } } }', true],
  ['mutation { pack { position } }', false],
  ['mutation { pack { position parcel { weight } } }', false],
  ['mutation { pack { parcel { weight } courierDay { parcels } } }', true],
  ['mutation { pack { query { parcel(parcelId: "a") { weight } } } }', false],
  ['mutation { pack { query { parcel(parcelId: "a") { weight } parcels { totalCount } } } }', true],
  ['mutation { pack { parcel { weight } } ship { parcel { weight } } }', true],
  ['{ parcel(parcelId: "a") { ...A } } fragment A on Parcel { ...B ...B } fragment B on Parcel { weight }', false],
])('%s needs a snapshot: %s', (source, expected) => {
  const document = parse(source);
  const operation = getOperationAST(document);
  expect(operation && needsSnapshot(operation, document, served)).toBe(expected);
});
