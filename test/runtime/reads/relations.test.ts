import { execute, parse } from 'graphql';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { cartSummaryV2 } from '../../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../../examples/shopping-cart/customer-profile.v1.ts';
import { globalPosition } from '../../../src/events/global-position.ts';
import { decimal } from '../../../src/projections/columns/decimal.ts';
import { type Projection, storedIn } from '../../../src/projections/projection/projection.ts';
import { type RowFilter, relatedTarget } from '../../../src/projections/queries/row-query.ts';
import { createPositions, type Positions } from '../../../src/runtime/reads/positions.ts';
import { createReadModels, type ReadModelSource } from '../../../src/runtime/reads/read-models.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications, type Notifications } from '../../../src/store/postgres/notifications.ts';
import type { Statement } from '../../../src/store/statements/statement.ts';
import { active, InMemoryServices, versionMap } from '../../schema/in-memory-services.ts';
import { createReadModelWriter, type ReadModelWriter, readSchema } from '../../support/read-model-writer.ts';
import { tableView } from '../../support/table-view.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

const served = [active(customerProfileV1), active(cartSummaryV2)];
const schema = buildSchema({ versions: versionMap(served), commands: [], maxPageSize: 1000 });

let testDatabase: TestDatabase;
let db: Database;
let notifications: Notifications;
let positions: Positions;
let source: ReadModelSource;
let carts: ReadModelWriter;
let statements: string[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  const pool = createDatabase({ url: testDatabase.url });
  db = {
    ...pool,
    transaction: (work, options) =>
      pool.transaction((tx) => work({ ...tx, query: (statement) => counted(statement, tx.query) }), options),
  };
  notifications = createNotifications({ url: testDatabase.url });
  positions = createPositions({ db, notifications, timeout: 300_000, head: async () => globalPosition(0n) });
  const history = async () => [];
  const versions = tableView();
  source = createReadModels({ db, readSchema, statementTimeout: 10_000, positions, versions, history });
  const customers = await createReadModelWriter(pool, customerProfileV1);
  carts = await createReadModelWriter(pool, cartSummaryV2);
  await customers.write({ upserted: Array.from({ length: 200 }, (_, index) => customerRow(index)) });
  await carts.write({ upserted: Array.from({ length: 600 }, (_, index) => cartRow(index, `customer-${index % 300}`)) });
});

beforeEach(() => {
  statements = [];
});

afterAll(async () => {
  positions.close();
  await notifications.close();
  await db.close();
  await testDatabase.drop();
});

test.each([1, 10, 200])('a page of %i rows takes as many statements as a page of any size', async (first) => {
  const { data, errors } = await run(`{
    customerProfiles(first: ${first}) {
      nodes {
        customerId
        carts(first: 3) { totalCount nodes { cartId customer { name carts(where: { status: { eq: Opened } }) { nodes { cartId } } } } }
      }
    }
  }`);
  expect(errors).toBeUndefined();
  const { nodes } = data.customerProfiles;
  expect(nodes).toHaveLength(first);
  const [customer] = nodes;
  expect(customer.carts.totalCount).toBe(2);
  expect(customer.carts.nodes).toHaveLength(2);
  expect(customer.carts.nodes[1].customer.carts.nodes).toHaveLength(2);
  // The page, counts and carts of its rows, their customers, and those customers' carts.
  expect(statements).toHaveLength(5);
});

test('rows without related rows, and rows that nothing references, are empty', async () => {
  const { data } = await run(`{
    stranger: cartSummary(cartId: "cart-250") { customerId customer { name } }
    known: cartSummary(cartId: "cart-5") { customer { name carts(first: 1) { nodes { cartId } pageInfo { hasNextPage } } } }
  }`);
  expect(data).toEqual({
    stranger: { customerId: 'customer-250', customer: null },
    known: {
      customer: { name: 'Customer 5', carts: { nodes: [{ cartId: 'cart-305' }], pageInfo: { hasNextPage: true } } },
    },
  });
});

test('related rows come from the same snapshot', async () => {
  const readModels = source.open({ snapshot: true });
  const [before] = await readModels.findByKeys(customerProfileV1, [['customer-1']], ['name']);
  await carts.write({ upserted: [cartRow(1000, 'customer-1')] });
  expect(before).toMatchObject({ name: 'Customer 1' });
  expect(await readModels.countRelated(cartSummaryV2, 'customerId', 'customer-1', null)).toBe(2);
  await readModels.close();
  const later = source.open({ snapshot: false });
  expect(await later.countRelated(cartSummaryV2, 'customerId', 'customer-1', null)).toBe(3);
  await later.close();
  await carts.write({ deleted: [['cart-1000']] });
});

test('lists of lists have a limit', async () => {
  const { errors } = await run(
    '{ customerProfiles(first: 200) { nodes { carts(first: 1000) { nodes { cartId } } } } }',
  );
  expect(errors[0]).toMatchObject({
    message: '200 lists of up to 1000 rows each may be 200000 rows; 100000 are the most. Ask for smaller pages.',
  });
});

test('a list is filtered by related rows in one statement', async () => {
  await carts.write({ upserted: [{ ...cartRow(1001, 'customer-7'), status: 'Confirmed' }] });
  const ids = async (where: string) => {
    const before = statements.length;
    const { data, errors } = await run(`{ customerProfiles(first: 1000, where: ${where}) { nodes { customerId } } }`);
    expect(errors).toBeUndefined();
    expect(statements.length - before).toBe(1);
    return data.customerProfiles.nodes.map(({ customerId }: { customerId: string }) => customerId);
  };
  expect(await ids('{ carts: { some: { status: { eq: Confirmed } } } }')).toEqual(['customer-7']);
  expect(await ids('{ carts: { none: { status: { eq: Opened } } } }')).toEqual([]);
  expect((await ids('{ carts: { every: { status: { eq: Opened } } } }')).length).toBe(199);
  expect((await ids('{ not: { carts: { some: { status: { eq: Confirmed } } } } }')).length).toBe(199);
  expect(await ids('{ not: { carts: { every: { status: { eq: Opened } } } } }')).toEqual(['customer-7']);
  expect(await ids('{ carts: { some: { customer: { carts: { some: { cartId: { eq: "cart-5" } } } } } } }')).toEqual([
    'customer-5',
  ]);
  const { data } = await run(
    '{ cartSummaries(first: 1000, where: { customer: { customerId: { eq: "customer-7" } } }) { totalCount } }',
  );
  expect(data.cartSummaries.totalCount).toBe(3);
  const stranger = await run('{ cartSummariesAggregate(where: { not: { customer: {} } }) { count } }');
  expect(stranger.data.cartSummariesAggregate.count).toBe(200);
  await carts.write({ deleted: [['cart-1001']] });
});

test('a filter follows related rows to the table that holds them now', async () => {
  const history = async () => [];
  const versions = tableView(customerProfileV1, cartSummaryV2);
  const moved = createReadModels({ db, readSchema, statementTimeout: 10_000, positions, versions, history });
  const before = (projection: Projection) => storedIn(projection, 'the_table_before');
  const isSeven: RowFilter = { kind: 'compare', column: 'customerId', operator: 'eq', value: 'customer-7' };
  const ofSeven: RowFilter = {
    kind: 'related',
    quantifier: 'some',
    target: relatedTarget(before(customerProfileV1)),
    columns: [['customerId', 'customerId']],
    filter: isSeven,
  };
  const operation = moved.open({ snapshot: false });
  const where: RowFilter = { kind: 'and', filters: [{ kind: 'not', filter: { kind: 'not', filter: ofSeven } }] };
  expect(await operation.count(before(cartSummaryV2), where)).toBe(2);
  await operation.close();
});

test('a filter follows a few relations at most, and a subscription follows none', async () => {
  const deep = (levels: number): string =>
    levels === 0 ? '{}' : `{ carts: { some: { customer: ${deep(levels - 1)} } } }`;
  const { errors } = await run(`{ customerProfiles(where: ${deep(3)}) { totalCount } }`);
  expect(errors[0].message).toBe("'where' follows more than 5 relations.");
});

async function run(source_: string) {
  const readModels = source.open({ snapshot: true });
  const contextValue = { ...new InMemoryServices(served).context(), readModels };
  const result = await execute({ schema, document: parse(source_), contextValue });
  await readModels.close();
  return JSON.parse(JSON.stringify(result));
}

function counted<R extends object>(
  statement: Statement,
  query: (statement: Statement) => Promise<R[]>,
): Promise<never> {
  if (!statement.text.startsWith('set ')) statements.push(statement.text);
  return query(statement) as Promise<never>; // the caller's type of row
}

function customerRow(index: number) {
  return {
    customerId: `customer-${index}`,
    name: `Customer ${index}`,
    email: `${index}@example.com`,
    city: null,
    registeredAt: '2026-01-31T12:00:00.000Z',
    cartsOpened: 3,
    lastCartOpenedAt: null,
  };
}

function cartRow(index: number, customerId: string) {
  return {
    cartId: `cart-${index}`,
    customerId,
    status: 'Opened',
    productItemsCount: 0,
    totalAmount: decimal('0'),
    productItems: [],
  };
}
