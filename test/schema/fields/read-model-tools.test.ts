import { type ExecutionResult, execute, getOperationAST, parse, subscribe, validate } from 'graphql';
import { expect, test } from 'vitest';
import { cartSummaryV2 } from '../../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../../examples/shopping-cart/customer-profile.v1.ts';
import { customer, shoppingCart } from '../../../examples/shopping-cart/events.ts';
import { openShoppingCart } from '../../../examples/shopping-cart/shopping-cart.ts';
import { extendSchema, globalPosition } from '../../../src/index.ts';
import { operationCost } from '../../../src/schema/analysis/operation-cost.ts';
import { needsSnapshot } from '../../../src/schema/analysis/operation-reads.ts';
import { ownFields } from '../../../src/schema/analysis/own-fields.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { demandedAfter } from '../../../src/schema/fields/after-directive.ts';
import { active, building, InMemoryServices, versionMap } from '../in-memory-services.ts';
import { allCommands, parcel, parcelRow, parcelV1 } from '../parcels.ts';

const at = '2026-01-31T12:00:00.000Z';

const extension = extendSchema(({ builder, readModel, rowField }) => {
  const carts = readModel('cart_summary');
  const customers = readModel('customer_profile');
  builder.queryFields((t) => ({
    cartOf: t.field({
      type: carts.rowType,
      nullable: true,
      args: { id: t.arg.string() },
      resolve: (_, { id }, context, info) => carts.findByKey({ cartId: id ?? null }, context, info),
    }),
    cartsOf: t.field({
      type: [carts.rowType],
      nullable: { list: false, items: true },
      args: { ids: t.arg.stringList({ required: true }) },
      resolve: (_, { ids }, context, info) =>
        carts.findByKeys(
          ids.map((id) => ({ cartId: id === '' ? null : id })),
          context,
          info,
        ),
    }),
    latestCarts: t.field({
      type: [carts.rowType],
      resolve: (_, __, context, info) => carts.findRows({ orderBy: [{ cartId: 'DESC' }], first: 2 }, context, info),
    }),
    // Filters by a column without an index, beside what the client filters by.
    smallCarts: t.field({
      type: carts.connectionType,
      args: carts.connectionArgs,
      resolve: (_, { where, ...page }, context, info) =>
        carts.findConnection(
          { ...page, where: { and: [where ?? {}, { productItemsCount: { lt: 3 } }] } },
          context,
          info,
        ),
    }),
    cartAfter: t.field({
      type: carts.rowType,
      nullable: true,
      resolve: (_, __, context, info) =>
        carts.findByKey({ cartId: 'c1' }, context, info, { after: globalPosition('4') }),
    }),
    openCarts: t.int({
      resolve: (_, __, context, info) => carts.count({ status: { eq: 'Opened' } }, context, info),
    }),
    found: t.field({
      type: [
        builder.unionType('Found', {
          types: [carts.rowType, customers.rowType],
          resolveType: (row) => ('cartId' in row ? 'CartSummary' : 'CustomerProfile'),
        }),
      ],
      resolve: async (_, __, context, info) => {
        const found = await Promise.all([
          carts.findRows({ first: 1 }, context, info),
          customers.findRows({ first: 1 }, context, info),
        ]);
        return found.flat();
      },
    }),
    amountOf: t.string({
      args: { id: t.arg.string({ required: true }) },
      resolve: async (_, { id }, context, info) => {
        const cart = await carts.findByKey({ cartId: id }, context, info, { needs: ['totalAmount'] });
        return `${cart?.totalAmount} of ${Object.keys(cart ?? {})}`;
      },
    }),
  }));
  rowField('customer_profile', 'lastCart', ['customerId'], (t) =>
    t.field({
      type: carts.rowType,
      nullable: true,
      resolve: async ({ customerId }, _, context, info) => {
        const query = { orderBy: [{ cartId: 'DESC' }], first: 1 };
        const [cart = null] = await carts.findRelated('customerId', customerId, query, context, info);
        return cart;
      },
    }),
  );
  rowField('cart_summary', 'owner', ['customerId'], (t) =>
    t.field({
      type: customers.rowType,
      nullable: true,
      resolve: ({ customerId }, _, context, info) => customers.findByKey({ customerId }, context, info),
    }),
  );
  rowField('cart_summary', 'isOpen', ['status'], (t) => t.boolean({ resolve: ({ status }) => status === 'Opened' }));
  rowField('cart_summary', 'ownerName', ['customerId'], (t) =>
    t.string({
      nullable: true,
      async resolve({ customerId }, _, context, info) {
        const owner = await customers.findByKey({ customerId }, context, info, { needs: ['name'] });
        return owner && String(owner.name);
      },
    }),
  );
  builder.queryField('misused', (t) =>
    t.field({
      type: [carts.rowType],
      args: { as: t.arg.string({ required: true }) },
      resolve: async (_, { as }, context, info) => {
        const query = misuses[as] ?? {};
        if ('key' in query) return [(await carts.findByKey(query.key as Record<string, unknown>, context, info)) ?? {}];
        if ('related' in query) return carts.findRelated('customerId', query.related, {}, context, info);
        if ('needs' in query) return carts.findRows({}, context, info, query as { needs: string[] });
        return carts.findRows(query, context, info);
      },
    }),
  );
  builder.subscriptionFields((t) => ({
    ticks: t.field({
      type: carts.rowType,
      nullable: true,
      async *subscribe() {
        yield 'c1';
      },
      resolve: (id, _, context, info) => carts.findByKey({ cartId: id }, context, info),
    }),
  }));
});

const misuses: Readonly<Record<string, object>> = {
  'an undefined value': { where: { customerId: { eq: undefined } } },
  'null instead of a filter': { where: { and: [null] } },
  'an undefined column': { where: { and: [{ customerId: undefined }] } },
  'an undefined part of a related filter': { where: { customer: { name: { eq: undefined } } } },
  'an unknown column': { where: { custmerId: { eq: 'ada' } } },
  'an operator of another kind': { where: { status: { gt: 'Opened' } } },
  'an unknown column to order by': { orderBy: [{ total: 'ASC' }] },
  'a list to order by': { orderBy: [{ productItems: 'ASC' }] },
  'an unknown direction': { orderBy: [{ cartId: 'desc' }] },
  'an unknown column that is needed': { needs: ['totl'] },
  'a related value that is undefined': { related: undefined },
  'a key with another name': { key: { id: 'c1' } },
  'a key without a value': { key: { cartId: undefined } },
};

/** Ada with three carts, and a cart of an unknown customer. */
async function shop(served = [active(customerProfileV1), active(cartSummaryV2)]) {
  const versions = versionMap(served);
  const services = new InMemoryServices(served);
  const schema = buildSchema({ versions, commands: [], maxPageSize: 50, extension });
  const payload = { profile: { name: 'Ada', email: 'ada@example.com' }, registeredAt: at };
  await services.append(customer, 'ada', { type: 'CustomerRegistered', payload });
  for (const [id, customerId] of Object.entries({ c1: 'ada', c2: 'nobody', c3: 'ada', c4: 'ada' }))
    await services.append(shoppingCart, id, { type: 'ShoppingCartOpened', payload: { customerId, openedAt: at } });
  const argsOf = (source: string) => {
    const document = parse(source);
    expect(validate(schema, document)).toEqual([]);
    const after = demandedAfter(getOperationAST(document) ?? undefined, {}, undefined);
    return { schema, document, contextValue: services.context(after === null ? {} : { after: after.position }) };
  };
  return {
    services,
    schema,
    versions,
    run: async (source: string) => JSON.parse(JSON.stringify(await execute(argsOf(source)))),
    subscribe: async (source: string) => subscribe(argsOf(source)),
  };
}

test.each([
  ['one by its key', '{ cartOf(id: "c1") { cartId } }', { cartOf: { cartId: 'c1' } }],
  ['none by a key that is null', '{ cartOf { cartId } }', { cartOf: null }],
  [
    'several by their keys',
    '{ cartsOf(ids: ["c2", "", "none", "c1"]) { cartId } }',
    { cartsOf: [{ cartId: 'c2' }, null, null, { cartId: 'c1' }] },
  ],
  ['a list', '{ latestCarts { cartId } }', { latestCarts: [{ cartId: 'c4' }, { cartId: 'c3' }] }],
  [
    'a connection, with the arguments of clients',
    '{ smallCarts(where: { customerId: { eq: "ada" } }, orderBy: [{ cartId: DESC }], first: 1) { totalCount nodes { cartId } pageInfo { hasNextPage } } }',
    { smallCarts: { totalCount: 3, nodes: [{ cartId: 'c4' }], pageInfo: { hasNextPage: true } } },
  ],
  ['a count', '{ openCarts }', { openCarts: 4 }],
  [
    'with relations below them, and fields of the application in rows',
    '{ cartOf(id: "c1") { isOpen owner { lastCart { cartId customer { name } } carts(first: 1) { nodes { cartId } } } } }',
    {
      cartOf: {
        isOpen: true,
        owner: { lastCart: { cartId: 'c4', customer: { name: 'Ada' } }, carts: { nodes: [{ cartId: 'c1' }] } },
      },
    },
  ],
  [
    'of several read models',
    '{ found { __typename ... on CartSummary { status } ... on CustomerProfile { city name } } }',
    {
      found: [
        { __typename: 'CartSummary', status: 'Opened' },
        { __typename: 'CustomerProfile', city: null, name: 'Ada' },
      ],
    },
  ],
])("an application's field returns rows: %s", async (_, source, data) => {
  const { run } = await shop();
  expect(await run(source)).toEqual({ data });
});

test('only what is selected is read, and what the resolver needs', async () => {
  const { run, services } = await shop();
  const columns = async (source: string) => {
    services.reads.length = 0;
    await run(source);
    return services.reads.map((read) => `${read.kind} ${read.version}: ${read.columns?.join(' ') ?? ''}`);
  };
  expect(await columns('{ cartOf(id: "c1") { status } }')).toEqual(['findByKeys cart_summary@2: status']);
  expect(await columns('{ smallCarts { edges { node { totalAmount } } nodes { status } } }')).toEqual([
    'findPage cart_summary@2: status totalAmount',
  ]);
  expect(await columns('{ smallCarts { totalCount } }')).toEqual(['count cart_summary@2: ']);
  expect(await columns('{ amountOf(id: "c1") }')).toEqual(['findByKeys cart_summary@2: totalAmount']);
  expect(await columns('{ cartOf(id: "c1") { owner { city } isOpen } }')).toEqual([
    'findByKeys cart_summary@2: customerId status',
    'findByKeys customer_profile@1: city',
  ]);
  // Each of its own type's columns, though both types have a customerId.
  expect(
    await columns('{ found { ... on CartSummary { status customerId } ... on CustomerProfile { name } } }'),
  ).toEqual(['findPage cart_summary@2: customerId status', 'findPage customer_profile@1: name']);
});

test('a demanded position is waited for, by all that the operation reads, before anything is read', async () => {
  const { run, services } = await shop();
  const order = async (source: string) => {
    services.reads.length = 0;
    await run(source);
    return services.reads.map(({ kind, version }) => `${kind} ${version}`);
  };
  expect(await order('query @after(position: "5") { cartOf(id: "c1") { owner { name } } }')).toEqual([
    'waitFor cart_summary@2',
    'waitFor customer_profile@1',
    'findByKeys cart_summary@2',
    'findByKeys customer_profile@1',
  ]);
  expect(
    await order('query @after(position: "5") { customerProfile(customerId: "ada") { lastCart { status } } }'),
  ).toEqual([
    'waitFor customer_profile@1',
    'waitFor cart_summary@2',
    'findByKeys customer_profile@1',
    'findRelated cart_summary@2',
  ]);
  expect(await order('query @after(position: "5") { openCarts }')).toEqual([
    'waitFor cart_summary@2',
    'count cart_summary@2',
  ]);
  expect(await order('{ cartAfter { status } }')).toEqual(['waitFor cart_summary@2', 'findByKeys cart_summary@2']);
});

test("an operation with an application's field reads from one snapshot", async () => {
  const served = await shop();
  const needs = (source: string) => {
    const document = parse(source);
    const operation = getOperationAST(document);
    return operation && needsSnapshot(operation, document, served);
  };
  expect(needs('{ openCarts }')).toBe(true);
  expect(needs('{ ...A } fragment A on Query { cartOf(id: "c1") { status } }')).toBe(true);
  expect(needs('{ cartSummary(cartId: "c1") { owner { name } } }')).toBe(true);
  expect(needs('{ cartSummary(cartId: "c1") { ownerName } }')).toBe(true);
  // It is computed from the row.
  expect(needs('{ cartSummary(cartId: "c1") { isOpen } }')).toBe(false);
});

test("an application's list costs as many rows as a page has", async () => {
  const { schema } = await shop();
  const cost = (source: string) => {
    const operation = getOperationAST(parse(source));
    return operation ? operationCost({ schema, operation, fragments: {}, variables: {} }) : undefined;
  };
  expect(cost('{ latestCarts { cartId } }')).toBe(20);
  expect(cost('{ latestCarts { customer { carts(first: 10) { nodes { status } } } } }')).toBe(20 * (1 + 1 + 10));
  expect(cost('{ smallCarts(first: 5) { nodes { status } } }')).toBe(5);
  expect(cost('{ cartOf(id: "c1") { status productItems { name } } }')).toBe(2);
});

test('a read model that is not active yet is refused with its progress', async () => {
  const { run } = await shop([active(customerProfileV1), building(cartSummaryV2)]);
  const { data, errors } = await run('{ cartOf(id: "c1") { status } }');
  expect(data).toEqual({ cartOf: null });
  expect(errors[0].message).toContain('cart_summary@2 is building and not active yet');
});

test.each([
  ['an undefined value', "'where.customerId.eq' is undefined; leave it out."],
  ['null instead of a filter', "'where.and[0]' is null; use {} where there is no condition."],
  ['an undefined column', "'where.and[0].customerId' is undefined; leave it out."],
  ['an undefined part of a related filter', "'where.customer.name.eq' is undefined; leave it out."],
  ['an unknown column', "'where.custmerId': there is no column 'custmerId'. Did you mean 'customerId'?"],
  ['an operator of another kind', "'status' can't be compared by 'gt'. Did you mean 'eq'?"],
  ['an unknown column to order by', "'orderBy.total': there is no column 'total'."],
  ['a list to order by', "'productItems' has no order: it is a list, an object or JSON."],
  ['an unknown direction', "'orderBy.cartId' is 'desc'. Did you mean 'DESC'?"],
  ['an unknown column that is needed', "'needs': there is no column 'totl'."],
  ['a related value that is undefined', "findRelated: the value of 'customerId' is undefined."],
  ['a key with another name', 'the key is { cartId }, found { id }.'],
  ['a key without a value', 'the key is { cartId }, found { cartId: undefined }.'],
])('%s is refused before anything is read', async (as, problem) => {
  const { run, services } = await shop();
  const { errors } = await run(`{ misused(as: "${as}") { cartId } }`);
  expect(errors[0].message).toMatch(/^readModel of \w+@\d: /);
  expect(errors[0].message).toContain(problem);
  expect(services.reads).toEqual([]);
});

test("a subscription to rows can't select an application's field that leads to other rows", async () => {
  const { subscribe } = await shop();
  for (const source of [
    'subscription { cartSummary(cartId: "c1") { owner { name } } }',
    'subscription { cartSummaries { entered { owner { name } } } }',
    'subscription { cartSummaryChanges { changes { row { owner { name } } } } }',
  ]) {
    const { errors } = (await subscribe(source)) as ExecutionResult;
    expect(errors?.[0]?.message).toBe(
      "A subscription can't select 'owner' of CartSummary: it would not notice when customer_profile changes. Query it, or subscribe to customer_profile as well.",
    );
  }
});

test('a scalar field of a row that reads other rows is refused in each event of a subscription', async () => {
  const { run, subscribe } = await shop();
  expect(await run('{ cartSummary(cartId: "c1") { ownerName } }')).toEqual({
    data: { cartSummary: { ownerName: 'Ada' } },
  });
  const updates = await subscribe('subscription { cartSummary(cartId: "c1") { status ownerName } }');
  const { value } = await (updates as AsyncGenerator<ExecutionResult>).next();
  expect(JSON.parse(JSON.stringify(value))).toMatchObject({
    data: { cartSummary: { status: 'Opened', ownerName: null } },
    errors: [
      {
        message:
          "A subscription can't select 'ownerName' of CartSummary: it would not notice when customer_profile changes. Query it, or subscribe to customer_profile as well.",
      },
    ],
  });
  await (updates as AsyncGenerator<ExecutionResult>).return(undefined);
});

test("an application's subscription reads rows as they are at its event", async () => {
  const { subscribe } = await shop();
  const updates = (await subscribe(
    'subscription { ticks { cartId owner { name } } }',
  )) as AsyncGenerator<ExecutionResult>;
  const { value } = await updates.next();
  expect(JSON.parse(JSON.stringify(value))).toEqual({ data: { ticks: { cartId: 'c1', owner: { name: 'Ada' } } } });
  await updates.return(undefined);
});

test("a row of the past can't select an application's field that leads to rows of now", async () => {
  const { run } = await shop();
  const { errors } = await run('{ cartSummary(cartId: "c1", asOf: { position: "2" }) { owner { name } } }');
  expect(errors[0].message).toContain("'owner' of CartSummary leads to rows as they are now");
});

test('no generated field is taken for one of the application', () => {
  const versions = versionMap([active(customerProfileV1), active(cartSummaryV2), active(parcelV1)]);
  const nothing = extendSchema(() => {});
  const commands = [openShoppingCart, ...allCommands];
  const schema = buildSchema({ versions, commands, maxPageSize: 50, federation: true, extension: nothing });
  expect(ownFields(schema)).toEqual({ roots: new Set(), reading: new Set(), leading: new Map() });
});

test('values of rows are accepted where clients write text', async () => {
  const extension = extendSchema(({ builder, readModel, rowField }) => {
    const parcels = readModel('parcel');
    rowField('parcel', 'alike', ['grams', 'weight'], (t) =>
      t.stringList({
        async resolve({ grams, weight }, _, context, info) {
          const where = { grams: { in: [grams] }, or: [{ weight: { lte: weight } }] };
          const found = await parcels.findRows({ where }, context, info, { needs: ['parcelId'] });
          return found.map(({ parcelId }) => String(parcelId));
        },
      }),
    );
    builder.queryField('light', (t) =>
      t.int({
        nullable: true,
        args: { weight: t.arg.float({ required: true }) },
        resolve: (_, { weight }, context, info) => parcels.count({ weight: { lt: weight } }, context, info),
      }),
    );
  });
  const versions = versionMap([active(parcelV1)]);
  const services = new InMemoryServices([active(parcelV1)]);
  const schema = buildSchema({ versions, commands: [], maxPageSize: 50, extension });
  for (const [id, weight] of Object.entries({ a: '0.001', b: '2' }))
    await services.append(parcel, id, { type: 'ParcelPacked', payload: { row: parcelRow({ weight }) } });
  const run = async (source: string) =>
    JSON.parse(JSON.stringify(await execute({ schema, document: parse(source), contextValue: services.context() })));
  expect(await run('{ parcels { nodes { parcelId alike } } }')).toEqual({
    data: {
      parcels: {
        nodes: [
          { parcelId: 'a', alike: ['a'] },
          { parcelId: 'b', alike: ['a', 'b'] },
        ],
      },
    },
  });
  expect(await run('{ light(weight: 1) }')).toEqual({ data: { light: 1 } });
  const { errors } = await run('{ light(weight: 1.5) }');
  expect(errors[0].message).toBe("'weight' expects a decimal as a string, such as '12.50'.");
});
