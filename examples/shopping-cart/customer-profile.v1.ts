import { defineProjection, many, t } from '../../src/index.ts';
import { customer, shoppingCart } from './events.ts';

/** Reads two families: the customer's data from its own stream, the number of carts from the carts. */
export const customerProfileV1 = defineProjection({
  name: 'customer_profile',
  version: 1,
  events: [customer, shoppingCart],
  table: {
    customerId: t.text().primaryKey(),
    name: t.text().index({ search: true }),
    email: t.text().index(),
    city: t.text().nullable().index(),
    registeredAt: t.timestamptz().index(),
    cartsOpened: t.integer().default(0),
    lastCartOpenedAt: t.timestamptz().nullable(),
  },
  relations: { carts: many('cart_summary', { to: 'customerId', description: 'All carts that it ever opened.' }) },
  key: (event) => (event.type === 'ShoppingCartOpened' ? event.payload.customerId : event.streamId),
  evolve: {
    CustomerRegistered: (_, { payload }) => ({ ...payload.profile, registeredAt: payload.registeredAt }),
    // A profile without a city removes the old city.
    CustomerProfileUpdated: (customer, { payload }) => customer && { ...customer, city: null, ...payload.profile },
    ShoppingCartOpened: (customer, { payload }) =>
      customer && { ...customer, cartsOpened: customer.cartsOpened + 1, lastCartOpenedAt: payload.openedAt },
  },
});
