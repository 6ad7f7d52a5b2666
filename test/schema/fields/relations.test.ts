import { execute, parse, subscribe, validate } from 'graphql';
import { expect, test } from 'vitest';
import { cartSummaryV1 } from '../../../examples/shopping-cart/cart-summary.v1.ts';
import { cartSummaryV2 } from '../../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../../examples/shopping-cart/customer-profile.v1.ts';
import { customer, shoppingCart } from '../../../examples/shopping-cart/events.ts';
import type { ServedVersion } from '../../../src/projections/projection/version-map.ts';
import { needsSnapshot } from '../../../src/schema/analysis/operation-reads.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { demandedAfter } from '../../../src/schema/fields/after-directive.ts';
import { active, building, InMemoryServices, versionMap } from '../in-memory-services.ts';

const at = '2026-01-31T12:00:00.000Z';

/** Ada with three carts, Bob with none, and a cart of an unknown customer. */
async function shop(...served: ServedVersion[]) {
  const versions = versionMap(served.length > 0 ? served : [active(customerProfileV1), active(cartSummaryV2)]);
  const services = new InMemoryServices([...versions.served.values()]);
  const schema = buildSchema({ versions, commands: [], maxPageSize: 50 });
  for (const [id, name] of [
    ['ada', 'Ada'],
    ['bob', 'Bob'],
  ] as const) {
    const payload = { profile: { name, email: `${id}@example.com` }, registeredAt: at };
    await services.append(customer, id, { type: 'CustomerRegistered', payload });
  }
  for (const [id, customerId] of [
    ['c1', 'ada'],
    ['c2', 'nobody'],
    ['c3', 'ada'],
    ['c4', 'ada'],
  ] as const)
    await services.append(shoppingCart, id, { type: 'ShoppingCartOpened', payload: { customerId, openedAt: at } });
  const argsOf = (source: string) => {
    const document = parse(source);
    expect(validate(schema, document)).toEqual([]);
    const [operation] = document.definitions;
    const after = operation?.kind === 'OperationDefinition' ? demandedAfter(operation, {}, undefined) : null;
    return { schema, document, contextValue: services.context(after === null ? {} : { after: after.position }) };
  };
  return {
    services,
    run: async (source: string) => JSON.parse(JSON.stringify(await execute(argsOf(source)))),
    subscribe: async (source: string) => subscribe(argsOf(source)),
  };
}

test('relations lead to rows in both directions, and back', async () => {
  const { run } = await shop();
  expect(
    await run(`{
      customerProfiles {
        nodes { name carts(first: 2, orderBy: [{ cartId: DESC }]) { totalCount nodes { cartId customer { name } } pageInfo { hasNextPage } } }
      }
      cartSummary(cartId: "c2") { cartId customer { name } }
    }`),
  ).toEqual({
    data: {
      customerProfiles: {
        nodes: [
          {
            name: 'Ada',
            carts: {
              totalCount: 3,
              nodes: [
                { cartId: 'c4', customer: { name: 'Ada' } },
                { cartId: 'c3', customer: { name: 'Ada' } },
              ],
              pageInfo: { hasNextPage: true },
            },
          },
          { name: 'Bob', carts: { totalCount: 0, nodes: [], pageInfo: { hasNextPage: false } } },
        ],
      },
      cartSummary: { cartId: 'c2', customer: null },
    },
  });
});

test('a list of a relation has filters, and pages by cursor', async () => {
  const { run } = await shop();
  const carts = async (args: string) => {
    const { data } = await run(
      `{ customerProfile(customerId: "ada") { carts(${args}) { nodes { cartId } pageInfo { endCursor } } } }`,
    );
    return data.customerProfile.carts;
  };
  expect((await carts('where: { cartId: { gt: "c1" } }')).nodes).toEqual([{ cartId: 'c3' }, { cartId: 'c4' }]);
  const { endCursor } = (await carts('first: 1')).pageInfo;
  expect((await carts(`after: "${endCursor}"`)).nodes).toEqual([{ cartId: 'c3' }, { cartId: 'c4' }]);
});

test('only selected columns, and those that a relation needs, are read', async () => {
  const { run, services } = await shop();
  await run('{ cartSummaries(first: 1) { nodes { status customer { city carts { nodes { status } } } } } }');
  expect(services.reads).toEqual([
    { kind: 'findPage', version: 'cart_summary@2', columns: ['customerId', 'status'] },
    { kind: 'findByKeys', version: 'customer_profile@1', columns: ['customerId', 'city'] },
    { kind: 'findRelated', version: 'cart_summary@2', columns: ['status'] },
  ]);
});

test('relations use the served version', async () => {
  const { run, services } = await shop(active(customerProfileV1), active(cartSummaryV1));
  const { data } = await run('{ customerProfile(customerId: "ada") { carts { nodes { totalAmount } } } }');
  expect(data.customerProfile.carts.nodes).toHaveLength(3);
  expect(services.reads.at(-1)).toMatchObject({ kind: 'findRelated', version: 'cart_summary@1' });
});

test('a relation to a version that is not active fails alone', async () => {
  const { run } = await shop(building(customerProfileV1), active(cartSummaryV2));
  const { data, errors } = await run('{ cartSummary(cartId: "c1") { status customer { name } } }');
  expect(data).toEqual({ cartSummary: { status: 'Opened', customer: null } });
  expect(errors[0]).toMatchObject({ path: ['cartSummary', 'customer'] });
  expect(errors[0].message).toContain('customer_profile@1 is building and not active yet');
});

test('every projection that a relation reaches waits for a demanded position before anything is read', async () => {
  const { run, services } = await shop();
  await run('query @after(position: "5") { cartSummary(cartId: "c1") { customer { name } } }');
  expect(services.reads.map(({ kind, version }) => `${kind} ${version}`)).toEqual([
    'waitFor cart_summary@2',
    'waitFor customer_profile@1',
    'findByKeys cart_summary@2',
    'findByKeys customer_profile@1',
  ]);
});

test('an operation that follows a relation reads from one snapshot', () => {
  const versions = versionMap([active(customerProfileV1), active(cartSummaryV2)]);
  const schema = buildSchema({ versions, commands: [], maxPageSize: 50 });
  const needs = (source: string) => {
    const document = parse(source);
    const [operation] = document.definitions;
    return operation?.kind === 'OperationDefinition' && needsSnapshot(operation, document, { schema, versions });
  };
  expect(needs('{ cartSummary(cartId: "c1") { status } }')).toBe(false);
  expect(needs('{ cartSummary(cartId: "c1") { status customer { name } } }')).toBe(true);
  expect(needs('{ cartSummaries { ...A } } fragment A on CartSummaryConnection { nodes { customer { name } } }')).toBe(
    true,
  );
});

test('a subscription refuses relations, because it would miss their changes', async () => {
  const { subscribe } = await shop();
  for (const document of [
    'subscription { cartSummary(cartId: "c1") { status customer { name } } }',
    'subscription { cartSummaries { entered { ...A } } } fragment A on CartSummary { customer { name } }',
  ]) {
    expect(await subscribe(document)).toMatchObject({
      errors: [
        {
          message:
            "A subscription can't select 'customer' of CartSummary: it would not notice when customer_profile changes. Query it, or subscribe to customer_profile as well.",
          originalError: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
  }
});
