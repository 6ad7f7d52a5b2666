import type { Projection } from '../../src/index.ts';
import { cartLines, cartSummary, groupTotals } from '../carts.ts';

/** Several for each worker of the cluster, because its hash may put two of them on one. */
export const distributedPartitions = 4;

export type Placement = 'schema' | 'partition';

export function isPlacement(text: string | undefined): text is Placement {
  return text === 'schema' || text === 'partition';
}

/** Three read models: one row for each cart, each event and each group. In the read store `apart`, or with the log. */
export function storedApart(apart: boolean, partitions = 1): readonly Projection[] {
  const projections = [cartSummary, cartLines, groupTotals];
  if (!apart) return projections;
  return projections.map((projection) => Object.freeze({ ...projection, store: 'apart', partitions }));
}
