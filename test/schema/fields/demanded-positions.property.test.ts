import fc from 'fast-check';
import { execute, getOperationAST, parse } from 'graphql';
import { expect, test } from 'vitest';
import { cartSummaryV2 } from '../../../examples/shopping-cart/cart-summary.v2.ts';
import { customerProfileV1 } from '../../../examples/shopping-cart/customer-profile.v1.ts';
import { customer, shoppingCart } from '../../../examples/shopping-cart/events.ts';
import { buildSchema } from '../../../src/schema/build-schema.ts';
import { demandedAfter } from '../../../src/schema/fields/after-directive.ts';
import { globalId } from '../../../src/schema/values/global-id.ts';
import { active, InMemoryServices, versionMap } from '../in-memory-services.ts';

const served = [active(customerProfileV1), active(cartSummaryV2)];
const schema = buildSchema({ versions: versionMap(served), commands: [], maxPageSize: 50, federation: true });
const at = '2026-01-31T12:00:00.000Z';

/** Every path to a row of either type, and to both. */
const fields = [
  'cartSummary(cartId: "cart") { status }',
  'cartSummary(cartId: "cart") { customer { name } }',
  'cartSummaries { nodes { status } totalCount(upTo: 5) }',
  'cartSummaries { nodes { customer { name carts { nodes { status } } } } }',
  'cartSummariesAggregate(where: { status: { eq: Confirmed } }) { count }',
  'cartSummariesGrouped(by: [status]) { key { status } count }',
  'customerProfile(customerId: "ada") { name }',
  'customerProfiles(where: { name: { contains: "Ada" } }) { nodes { name } totalCount }',
  'customerProfile(customerId: "ada") { carts { totalCount nodes { status } } }',
  'node(id: $cart) { ... on CartSummary { status } }',
  'nodes(ids: [$cart, $ada]) { ... on CartSummary { status } ... on CustomerProfile { name } }',
  '_entities(representations: $entities) { ... on CartSummary { status } ... on CustomerProfile { name } }',
  '_entities(representations: [{ __typename: "CustomerProfile", customerId: "ada" }]) { ... on CustomerProfile { name } }',
];

const variables = {
  cart: globalId(cartSummaryV2, { cartId: 'cart' }),
  ada: globalId(customerProfileV1, { customerId: 'ada' }),
  entities: [
    { __typename: 'CartSummary', cartId: 'cart' },
    { __typename: 'CustomerProfile', customerId: 'ada' },
  ],
};

async function answer(services: InMemoryServices, chosen: readonly string[], after: bigint | null): Promise<unknown> {
  const selected = chosen.map((field, index) => `f${index}: ${field}`).join(' ');
  // Not validated: it may have unused variables.
  const document = parse(`
    query ($after: Position, $cart: ID!, $ada: ID!, $entities: [_Any!]!) @after(position: $after) { ${selected} }
  `);
  const variableValues = { ...variables, after: after === null ? null : String(after) };
  const demanded = demandedAfter(getOperationAST(document) ?? undefined, variableValues, undefined);
  const contextValue = services.context(demanded === null ? {} : { after: demanded.position });
  const { data, errors } = await execute({ schema, document, variableValues, contextValue });
  expect(errors).toBeUndefined();
  return JSON.parse(JSON.stringify(data));
}

test('every part of a response is of the demanded position, whichever fields are read and whichever version is late', async () => {
  const cases = fc.record({
    chosen: fc.uniqueArray(fc.constantFrom(...fields), { minLength: 1, maxLength: 4 }),
    late: fc.shuffledSubarray(
      served.map(({ projection }) => projection),
      { minLength: 1 },
    ),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ chosen, late }) => {
      const services = new InMemoryServices(served);
      const payload = { profile: { name: 'Ada', email: 'ada@example.com' }, registeredAt: at };
      await services.append(customer, 'ada', { type: 'CustomerRegistered', payload });
      await services.append(shoppingCart, 'cart', {
        type: 'ShoppingCartOpened',
        payload: { customerId: 'ada', openedAt: at },
      });
      for (const projection of late) services.hold(projection);
      await services.append(shoppingCart, 'cart', { type: 'ShoppingCartConfirmed', payload: { confirmedAt: at } });
      await services.append(customer, 'ada', {
        type: 'CustomerProfileUpdated',
        payload: { profile: { name: 'Ada Lovelace', email: 'ada@example.com' }, updatedAt: at },
      });
      const waiting = answer(services, chosen, services.head);
      const readEarly = new Map<string, number>();
      for (const projection of late) {
        await new Promise(setImmediate);
        readEarly.set(projection.id, readsOf(services).length);
        services.release(projection);
      }
      const given = await waiting;
      const versions = new Set(readsOf(services).map(({ version }) => version));
      // One snapshot for all: nothing is read before the last version has the position.
      for (const [version, reads] of readEarly) if (versions.has(version)) expect(reads).toBe(0);
      expect(given).toEqual(await answer(services, chosen, null));
    }),
    { numRuns: 200 },
  );
});

function readsOf(services: InMemoryServices) {
  return services.reads.filter(({ kind }) => kind !== 'waitFor');
}
