import fc from 'fast-check';
import { getOperationAST, type OperationDefinitionNode, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { operationCost } from '../../../src/schema/analysis/operation-cost.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { coerceVariables } from '../../../src/schema/contract/graphql-release.ts';
import { active, versionMap } from '../in-memory-services.ts';
import { courierDayV1, parcelV1 } from '../parcels.ts';

const versions = versionMap([active(parcelV1), active(courierDayV1)]);
const schema = buildSchema({ versions, commands: [], maxPageSize: 1000, federation: true });

const size = fc.nat({ max: 300 });
const list = (item: fc.Arbitrary<string>) => fc.array(item, { maxLength: 40 }).map((all) => `[${all.join(' ')}]`);
const entity = fc.constantFrom('{ __typename: "Parcel", parcelId: "a" }', '{ __typename: "CourierDay" }');

/** Each argument that says how many rows are read, with a field around its value. */
const places: readonly (readonly [before: string, type: string, after: string, literal: fc.Arbitrary<string>])[] = [
  ['{ parcels(first: ', 'Int', ') { nodes { weight } } }', size.map(String)],
  ['{ parcels(last: ', 'Int', ') { edges { node { weight } } } }', size.map(String)],
  ['{ parcels(first: null, last: ', 'Int', ') { pageInfo { endCursor } nodes { id } } }', size.map(String)],
  ['{ parcels(where: { weight: { gt: "1" } }, first: ', 'Int', ') { nodes { id } } }', size.map(String)],
  ['{ parcelsGrouped(by: [status], first: ', 'Int', ') { count } }', size.map(String)],
  ['{ nodes(ids: ', '[ID!]!', ') { id ... on Parcel { weight } } }', list(size.map((id) => `"${id}"`))],
  ['{ nodes(ids: ', '[ID!]!', ') { id } }', size.map((id) => `"${id}"`)], // one value for a list
  ['{ _entities(representations: ', '[_Any!]!', ') { __typename } }', list(entity)],
  ['{ _entities(representations: ', '[_Any!]!', ') { __typename } }', entity],
];

/** The same value in each way in which a client can give it. The variable's other default does not count. */
const forms = (type: string, literal: string, other: string) => [
  { definition: '', value: literal, sent: {} },
  { definition: `($v: ${type})`, value: '$v', sent: { v: asSent(literal) } },
  { definition: `($v: ${type} = ${other})`, value: '$v', sent: { v: asSent(literal) } },
  { definition: `($v: ${type} = ${literal})`, value: '$v', sent: {} },
];

function asSent(literal: string): unknown {
  return JSON.parse(
    literal
      .replaceAll('" "', '", "')
      .replaceAll('} {', '}, {')
      .replaceAll(/(\w+): /g, '"$1": '),
  );
}

function operationIn(query: string): OperationDefinitionNode {
  const document = parse(query);
  expect(validate(schema, document)).toEqual([]);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('It has one operation.');
  return operation;
}

test('an operation costs the same, whether a length is literal, a variable or a default', () => {
  const place = fc.nat({ max: places.length - 1 });
  const values = place.chain((index) => {
    const [before, type, after, literal] = places[index] as (typeof places)[number]; // within the list
    return fc.record({
      before: fc.constant(before),
      type: fc.constant(type),
      after: fc.constant(after),
      literal,
      other: literal,
    });
  });
  fc.assert(
    fc.property(values, ({ before, type, after, literal, other }) => {
      const costs = forms(type, literal, other).map(({ definition, value, sent }) => {
        const operation = operationIn(`query ${definition} ${before}${value}${after}`);
        const variables = coerceVariables(schema, operation, sent);
        expect(variables).toBeDefined();
        return variables && operationCost({ schema, operation, fragments: {}, variables });
      });
      const given = asSent(literal);
      const rows = Array.isArray(given) ? given.length : typeof given === 'number' ? given : 1;
      expect(costs).toEqual(costs.map(() => rows));
    }),
  );
});

test('a part of a list of values counts, if it is a variable', () => {
  const operation = operationIn('query ($a: ID!, $b: ID! = "b") { nodes(ids: [$a, $b, "c"]) { id } }');
  const variables = coerceVariables(schema, operation, { a: 'a' }) ?? {};
  expect(operationCost({ schema, operation, fragments: {}, variables })).toBe(3);
});
