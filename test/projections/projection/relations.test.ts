import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, defineEvents, defineProjection, many, one, t } from '../../../src/index.ts';
import type { RelationOption } from '../../../src/projections/projection/relations.ts';

const thing = defineEvents('thing', { Done: z.object({}) });
const rest = {
  events: thing,
  key: (event: { readonly streamId: string }) => event.streamId,
  evolve: { Done: () => null },
} as const;

const customer = {
  name: 'customer_profile',
  version: 1,
  table: { customerId: t.text().primaryKey() },
  ...rest,
} as const;
const cart = {
  name: 'cart_summary',
  version: 1,
  table: { cartId: t.text().primaryKey(), customerId: t.text().index(), note: t.text(), pieces: t.integer().index() },
  ...rest,
} as const;

const customerOf = (relations: Readonly<Record<string, RelationOption<'customerId'>>>, table = {}) =>
  defineProjection({ ...customer, table: { ...customer.table, ...table }, relations });
const carts = defineProjection(cart);

test('relations in both directions are accepted, in all versions of both projections', () => {
  const customers = customerOf({ carts: many('cart_summary', { to: 'customerId' }) });
  const related = { relations: { customer: one('customer_profile', { from: 'customerId' }) } };
  const config = defineConfig({
    projections: [
      customers,
      defineProjection({ ...cart, ...related }),
      defineProjection({ ...cart, ...related, version: 2 }),
    ],
  });
  expect(config.projections[0]?.relations).toEqual({
    carts: { kind: 'many', target: 'cart_summary', from: 'customerId', to: 'customerId' },
  });
  expect(config.projections[1]?.relations).toEqual({
    customer: { kind: 'one', target: 'customer_profile', from: ['customerId'] },
  });
});

test('a column that the own table does not have is a compile error and a start-up error', () => {
  expect(() =>
    defineProjection({
      ...cart,
      // @ts-expect-error an unknown column
      relations: { customer: one('customer_profile', { from: 'custmerId' }) },
    }),
  ).toThrow(
    "cart_summary@1: relation 'customer' comes from a column 'custmerId' that the table does not declare. Did you mean 'customerId'?",
  );
});

test.each([
  [{ customerId: one('cart_summary', { from: 'customerId' }) }, "'customerId' is a column and a relation; rename one"],
  [{ Carts: many('cart_summary', { to: 'customerId' }) }, "relation 'Carts' needs a camelCase name"],
  [{ carts: 'cart_summary' as never }, "relation 'carts' was not made with one(…) or many(…)."],
])('%j is refused by the declaration', (relations, message) => {
  expect(() => customerOf(relations)).toThrow(`customer_profile@1: ${message}`);
});

test('with several key columns, it is ambiguous which one other rows refer to', () => {
  expect(() =>
    customerOf({ carts: many('cart_summary', { to: 'customerId' }) }, { day: t.date().primaryKey() }),
  ).toThrow(
    "relation 'carts' must name the column that the other rows refer to, because the key has several: { from: 'customerId', … }.",
  );
});

test.each([
  [
    { carts: many('cart_sumary', { to: 'customerId' }) },
    "leads to 'cart_sumary', which is not declared. Did you mean 'cart_summary'?",
  ],
  [
    { carts: many('cart_summary', { to: 'custmerId' }) },
    "needs a column 'custmerId' in cart_summary@1, which has none. Did you mean 'customerId'? Every version of cart_summary must have it, because any of them may be served.",
  ],
  [
    { carts: many('cart_summary', { to: 'note' }) },
    "would read the whole table for each row: cart_summary@1 has no index of 'note'. Declare it with .index().",
  ],
  [
    { carts: many('cart_summary', { to: 'pieces' }) },
    "compares 'customerId' (text) with 'pieces' of cart_summary@1 (integer). Declare both with the same type.",
  ],
  [
    { carts: one('cart_summary', { from: ['customerId', 'customerId'] }) },
    'names 2 of the 1 key columns of cart_summary@1 (cartId). List one column for each, in this order.',
  ],
])('%j is refused by the configuration', (relations, message) => {
  expect(() => defineConfig({ projections: [customerOf(relations), carts] })).toThrow(
    `customer_profile@1: relation 'carts' ${message}`,
  );
});

test('a relation is refused if one version lacks the column', () => {
  const { customerId, ...others } = cart.table;
  const second = defineProjection({ ...cart, version: 2, table: others });
  const customers = customerOf({ carts: many('cart_summary', { to: 'customerId' }) });
  expect(() => defineConfig({ projections: [customers, carts, second] })).toThrow(
    "relation 'carts' needs a column 'customerId' in cart_summary@2, which has none.",
  );
});
