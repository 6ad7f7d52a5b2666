import { defineConfig } from 'refold';
import { addItem } from './src/add-item.ts';
import { cartSummaryV1 } from './src/cart-summary.v1.ts';
import { cartSummaryV2 } from './src/cart-summary.v2.ts';

export default defineConfig({
  projections: [cartSummaryV1, cartSummaryV2],
  commands: [addItem],
});
