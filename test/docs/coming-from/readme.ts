import { z } from 'zod';
import { defineEvents, defineImport } from '../../../src/index.ts';

const cart = defineEvents('shopping_cart', {
  ProductItemAdded: z.object({ productId: z.string(), quantity: z.int() }),
  ShoppingCartConfirmed: z.object({}),
});

interface ExportedEvent {
  readonly stream: string;
  readonly position: number;
  readonly type: string;
  readonly id?: string;
  readonly at: string;
  readonly payload: unknown;
  readonly metadata?: object | null;
}

export const historyImport = defineImport({
  name: 'history',
  description: 'The events of the old store, one JSON object a line.',
  async *toAppends(lines) {
    for await (const { text } of lines) {
      const { stream, position, at, metadata, ...event }: ExportedEvent = JSON.parse(text);
      yield {
        family: cart,
        streamId: stream,
        expectedVersion: position - 1, // a gap, or another order within a stream, ends the import
        events: [{ ...event, metadata: { ...metadata, originalAt: at } }],
        idempotencyKey: `history:${stream}/${position}`,
      };
    }
  },
});
