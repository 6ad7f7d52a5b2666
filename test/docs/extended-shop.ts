import shop from '../../examples/shopping-cart/app.ts';
import { confirmShoppingCart } from '../../examples/shopping-cart/shopping-cart.ts';
import { type Decimal, defineConfig, extendSchema } from '../../src/index.ts';

/** The application of the page about an application's own fields. */
export const extendedShop = defineConfig({
  development: false,
  projections: shop.projections,
  schema: extendSchema(({ builder, readModel, rowField }) => {
    const carts = readModel('cart_summary');

    builder.queryField('largestCartOf', (t) =>
      t.field({
        type: carts.rowType,
        nullable: true,
        args: { customerId: t.arg.id({ required: true }) },
        async resolve(_root, { customerId }, context, info) {
          const where = { customerId: { eq: customerId }, status: { eq: 'Opened' } };
          const query = { where, orderBy: [{ totalAmount: 'DESC' }], first: 1 };
          const [largest = null] = await carts.findRows(query, context, info);
          return largest;
        },
      }),
    );

    rowField('cart_summary', 'isLarge', ['totalAmount'], (t) =>
      t.boolean({ resolve: (cart) => (cart.totalAmount as Decimal).gt(20) }),
    );

    builder.queryField('smallCarts', (t) =>
      t.field({
        type: carts.connectionType,
        args: carts.connectionArgs,
        resolve: (_root, { where, ...page }, context, info) =>
          carts.findConnection(
            { ...page, where: { and: [where ?? {}, { totalAmount: { lt: '20' } }] } },
            context,
            info,
          ),
      }),
    );

    builder.mutationField('checkOut', (t) =>
      t.field({
        type: carts.rowType,
        nullable: true,
        args: { cartId: t.arg.id({ required: true }) },
        async resolve(_root, { cartId }, context, info) {
          const { position } = await context.commands.execute(confirmShoppingCart, { cartId }, {});
          return carts.findByKey({ cartId }, context, info, { after: position });
        },
      }),
    );

    builder.queryField('serverTime', (t) => t.string({ access: 'public', resolve: () => new Date().toISOString() }));
  }),
  gateway: { port: 0 },
});
