import { z } from 'zod';
import { type CommonOptions, defineEvents, defineProjection, t } from '../../src/index.ts';

/** A small cart, for the promises of the reference systems. */
export const cart = defineEvents('cart', {
  Opened: z.object({ customer: z.string() }),
  ItemAdded: z.object({ quantity: z.int() }),
  Confirmed: z.object({}),
});

interface ItemCountOptions
  extends Partial<Pick<CommonOptions<string, typeof cart, never>, 'mode' | 'onError' | 'startAfter'>> {
  readonly activation?: 'auto' | 'manual' | { readonly maxLag: number };
  readonly partitions?: number;
  readonly snapshots?: { readonly everyEvents: number };
  /** Whether `evolve` fails on an added quantity. @default never */
  readonly fails?: (quantity: number) => boolean;
}

/** The number of items in each cart. */
export function itemCount(name: string, { fails = () => false, ...options }: ItemCountOptions = {}) {
  return defineProjection({
    name,
    version: 1,
    events: cart,
    table: { cartId: t.text().primaryKey(), items: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      ItemAdded: (row, { payload: { quantity } }) => {
        if (fails(quantity)) throw new Error(`${quantity} items can't be counted`);
        return { items: (row?.items ?? 0) + quantity };
      },
    },
    ...options,
  });
}

/** Its second version: also counts the lines. */
export function itemAndLineCount(name: string, options: Pick<ItemCountOptions, 'activation'> = {}) {
  return defineProjection({
    name,
    version: 2,
    events: cart,
    table: { cartId: t.text().primaryKey(), items: t.integer(), lines: t.integer() },
    key: (event) => event.streamId,
    evolve: {
      ItemAdded: (row, { payload: { quantity } }) => ({
        items: (row?.items ?? 0) + quantity,
        lines: (row?.lines ?? 0) + 1,
      }),
    },
    ...options,
  });
}

/** An append of items to a cart: one event for each quantity. */
export function added(streamId: string, ...quantities: readonly number[]) {
  const events = quantities.map((quantity) => ({ type: 'ItemAdded', payload: { quantity } }) as const);
  return { family: cart, streamId, events };
}
