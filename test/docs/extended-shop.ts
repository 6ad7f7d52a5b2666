import shop from '../../examples/shopping-cart/app.ts';
import { type Decimal, defineConfig, extendSchema } from '../../src/index.ts';

/** The application of the page about an application's own fields. */
export const extendedShop = defineConfig({
  development: false,
  projections: shop.projections,
  schema: extendSchema(({ builder, rowField }) => {
    rowField('cart_summary', 'isLarge', ['totalAmount'], (t) =>
      t.boolean({ resolve: (cart) => (cart.totalAmount as Decimal).gt(20) }),
    );
    builder.queryField('serverTime', (t) => t.string({ resolve: () => new Date().toISOString() }));
  }),
  gateway: { port: 0 },
});
