import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

export const warehouse = defineEvents('warehouse', {
  StockReceived: z.object({ sku: z.string(), quantity: z.int().positive() }),
  StockShipped: z.object({ sku: z.string(), quantity: z.int().positive() }),
});
