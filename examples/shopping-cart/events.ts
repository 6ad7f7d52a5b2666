import { z } from 'zod';
import { defineEvents, type PayloadOf } from '../../src/index.ts';

/** An amount of money as a decimal string: JSON numbers are floats, which can't hold all cents exactly. */
export const money = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,2})?$/, "expected an amount such as '12.50', from 0 to 999999.99")
  .meta({ format: 'decimal' });

/** The id names its GraphQL type, which all commands with this input share. */
export const productItem = z
  .object({
    productId: z.string().min(1).max(100),
    name: z.string().min(1).max(200),
    quantity: z.int().min(1).max(1000),
    unitPrice: money,
  })
  .meta({ id: 'ProductItem' });

export const shoppingCart = defineEvents('shopping_cart', {
  ShoppingCartOpened: z.object({ customerId: z.string().min(1), openedAt: z.iso.datetime() }),
  ProductItemAdded: z.object({ productItem }),
  ProductItemRemoved: z.object({ productItem }),
  ShoppingCartConfirmed: z.object({ confirmedAt: z.iso.datetime() }),
  ShoppingCartCancelled: z.object({ cancelledAt: z.iso.datetime() }),
});

export type ProductItem = PayloadOf<typeof shoppingCart, 'ProductItemAdded'>['productItem'];

export const profile = z
  .object({
    name: z.string().trim().min(1).max(200),
    email: z.email().max(254),
    city: z.string().trim().min(1).max(100).optional(),
  })
  .meta({ id: 'CustomerProfile' });

export const customer = defineEvents('customer', {
  CustomerRegistered: z.object({ profile, registeredAt: z.iso.datetime() }),
  CustomerProfileUpdated: z.object({ profile, updatedAt: z.iso.datetime() }),
});
