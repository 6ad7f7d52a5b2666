import { buildSchema, findBreakingChanges, findDangerousChanges } from 'graphql';
import { expect, test } from 'vitest';
import { schemaDiff } from '../../../src/schema/analysis/schema-diff.ts';

const older = `
  enum Status { OPEN CLOSED }
  enum Order { UP DOWN }
  scalar Money
  interface Node { id: ID! }
  interface Named { name: String }
  type Cart implements Node & Named {
    id: ID!
    name: String
    total: Money!
    status: Status!
    tags: [String!]
    items(first: Int = 10, by: Order, gone: Int): [Item]
    exact(size: Int): Int
  }
  type Item { id: ID! note: String @deprecated(reason: "old") }
  type Gone { id: ID! }
  union Thing = Cart | Item
  input Filter { name: String status: Status! loose: Int strict: Int! list: [Int] }
  type Query { cart(where: Filter, order: Order): Cart thing: Thing gone: Gone }
`;
const newer = `
  enum Status { OPEN LOST }
  enum Order { UP DOWN ASIDE }
  type Money { amount: Int }
  interface Node { id: ID! }
  interface Named { name: String }
  interface Priced { price: Int }
  type Cart implements Node & Priced {
    id: ID!
    name: String!
    total: Money!
    status: Status
    tags: [String]
    items(first: Int = 20, by: Order!, more: Int): [Item!]!
    exact(size: Int, unit: String!): Int
    price: Int @deprecated(reason: "use total")
  }
  type Item { id: ID! note: String }
  type Fresh { id: ID! }
  union Thing = Cart | Fresh
  input Filter { name: String! status: Status loose: Int strict: Int! list: [Int!] added: Int needed: Int! }
  type Query { cart(where: Filter, order: Order): Cart thing: Thing fresh: Fresh }
`;
const diff = (a: string, b: string) => schemaDiff(buildSchema(a), buildSchema(b));
const messages = (a: string, b: string, criticality: string) =>
  diff(a, b)
    .filter((change) => change.criticality === criticality)
    .map(({ message }) => message)
    .toSorted();

test.each([
  ['forwards', older, newer],
  ['backwards', newer, older],
])('the breaking changes are those of graphql-js, in its words: %s', (_, a, b) => {
  const expected = findBreakingChanges(buildSchema(a), buildSchema(b)).map(({ description }) => description);
  expect(messages(a, b, 'breaking')).toEqual(expected.toSorted());
});

test('values new to clients are dangerous: the dangerous changes of graphql-js except new optional inputs', () => {
  const expected = findDangerousChanges(buildSchema(older), buildSchema(newer))
    .filter(({ type, description }) => !type.startsWith('OPTIONAL') && !description.includes('enum type Order'))
    .map(({ description }) => description);
  expect(messages(older, newer, 'dangerous')).toEqual(expected.toSorted());
  expect(messages(older, newer, 'dangerous')).toContain('LOST was added to enum type Status.');
});

test('changes that no client can notice are safe', () => {
  expect(messages(older, newer, 'safe')).toEqual([
    // Only ever sent by clients.
    'ASIDE was added to enum type Order.',
    'An optional arg more on Cart.items was added.',
    'An optional field added on input type Filter was added.',
    'Cart.items changed type from [Item] to [Item!]!.',
    'Cart.name changed type from String to String!.',
    'Cart.price was added.',
    'Filter.status changed type from Status! to Status.',
    'Fresh was added.',
    'Item.note is no longer deprecated.',
    'Priced was added.',
    'Query.fresh was added.',
  ]);
  const deprecated = older.replace('name: String\n', 'name: String @deprecated(reason: "none has one")\n');
  expect(diff(older, deprecated)).toEqual([
    {
      criticality: 'safe',
      path: 'Cart.name',
      message: 'Cart.name is deprecated: none has one',
      concerns: 'Cart.name',
    },
  ]);
  expect(diff(older, older)).toEqual([]);
});

test('each change names its subject, and what a client must have selected to be affected', () => {
  const found = Object.fromEntries(diff(older, newer).map(({ path, concerns }) => [path, concerns]));
  expect(found).toMatchObject({
    Gone: 'Gone',
    'Query.gone': 'Query.gone',
    'Status.CLOSED': 'Status.CLOSED',
    'Cart.items(by:)': 'Cart.items(by:)',
    'Cart.items(gone:)': 'Cart.items(gone:)',
    // It can't have been selected, because it is new.
    'Cart.exact(unit:)': 'Cart.exact',
    'Filter.needed': 'Filter',
  });
  expect(diff(older, newer).map(({ criticality }) => criticality)).toEqual(
    diff(older, newer)
      .map(({ criticality }) => criticality)
      .toSorted(),
  );
});
