import type { Projection } from '../../src/index.ts';
import { cartLines, cartSummary, groupTotals } from '../carts.ts';

/** Three read models: one row for each cart, each event and each group. In the read store `apart`, or with the log. */
export function storedApart(apart: boolean): readonly Projection[] {
  const projections = [cartSummary, cartLines, groupTotals];
  return apart ? projections.map((projection) => Object.freeze({ ...projection, store: 'apart' })) : projections;
}
