import { buildSchema, getOperationAST, parse, validate } from 'graphql';
import { expect, test } from 'vitest';
import { addVariablesUsage, documentUsage } from '../../../src/schema/analysis/document-usage.ts';
import { sentVariables } from '../../../src/schema/contract/sent-variables.ts';

const schema = buildSchema(`
  enum Status { OPEN CLOSED }
  scalar Money
  interface Node { id: ID! }
  type Item implements Node { id: ID! price: Money! }
  type Cart implements Node { id: ID! total(in: Status): Money! items(first: Int): [Item!]! }
  input Total { min: Money max: Money }
  input Filter { status: Status statuses: [Status!] total: Total and: [Filter!] name: String }
  type Query { cart(id: ID!): Cart carts(where: Filter, order: Status = OPEN): [Cart!]! node(id: ID!): Node }
`);

function asked(query: string, variables: Record<string, unknown> = {}): string[] {
  const document = parse(query);
  expect(validate(schema, document)).toEqual([]);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('one operation');
  const usage = documentUsage(schema, document, operation);
  const paths = new Set(usage.paths);
  addVariablesUsage(usage, sentVariables(operation, variables), paths);
  expect(documentUsage(schema, document, operation)).toBe(usage);
  return [...paths].toSorted();
}

test('an operation uses its fields, its arguments, the fields of its inputs and the enum values that it sends', () => {
  expect(
    asked(
      '{ a: cart(id: "1") { __typename total(in: CLOSED) } carts(where: { and: [{ status: OPEN }], total: { min: 1 } }) { id @skip(if: true) } }',
    ),
  ).toEqual([
    'Cart.id',
    'Cart.total',
    'Cart.total(in:)',
    'Filter.and',
    'Filter.status',
    'Filter.total',
    'Query.cart',
    'Query.cart(id:)',
    'Query.carts',
    'Query.carts(where:)',
    'Status.CLOSED',
    'Status.OPEN',
    'Total.min',
  ]);
});

test('fragments count where they are spread, at any depth, with named types and abstract types', () => {
  expect(
    asked(
      '{ node(id: "1") { ...a } } fragment a on Node { id ... on Cart { ...b } } fragment b on Cart { items { price } }',
    ),
  ).toEqual(['Cart', 'Cart.items', 'Item.price', 'Node', 'Node.id', 'Query.node', 'Query.node(id:)']);
});

test('values of variables count like literals in the document', () => {
  const query =
    'query ($where: Filter, $order: [Status!], $name: String) { carts(where: $where) { id } b: carts(where: { statuses: $order, name: $name }) { id } }';
  expect(
    asked(query, {
      where: { total: { max: 3 }, and: [{ status: 'CLOSED' }, { status: null }], unknown: 1 },
      order: 'OPEN',
      name: 'x',
    }),
  ).toEqual([
    'Cart.id',
    'Filter',
    'Filter.and',
    'Filter.name',
    'Filter.status',
    'Filter.statuses',
    'Filter.total',
    'Query.carts',
    'Query.carts(where:)',
    'Status',
    'Status.CLOSED',
    'Status.OPEN',
    'Total.max',
  ]);
});

test.each([
  ['Filter', '{ status: OPEN, and: [{ total: { min: 1 } }] }', '{ name: "x" }', 'carts(where: VALUE) { id }'],
  ['Status', 'CLOSED', 'OPEN', 'carts(order: VALUE) { id }'],
  ['[Status!]', '[OPEN CLOSED]', '[]', 'carts(where: { statuses: VALUE }) { id }'],
])('a %s counts the same, whether it is literal, a variable or a default that is used', (type, literal, other, field) => {
  const sent = JSON.parse(
    literal
      .replaceAll(/(\w+):/g, '"$1":')
      .replaceAll(/\b(OPEN|CLOSED)\b/g, '"$1"')
      .replace('" "', '", "'),
  );
  const asVariable = `{ ${field.replace('VALUE', '$v')} }`;
  const named = [type.replaceAll(/\W/g, '')];
  const expected = [...new Set([...asked(`{ ${field.replace('VALUE', literal)} }`), ...named])].toSorted();
  expect(asked(`query ($v: ${type}) ${asVariable}`, { v: sent })).toEqual(expected);
  expect(asked(`query ($v: ${type} = ${literal}) ${asVariable}`)).toEqual(expected);
  expect(asked(`query ($v: ${type} = ${other}) ${asVariable}`, { v: sent })).toEqual(expected);
});
