import type { Columns } from '../../src/projections/columns/column.ts';
import type { Projection } from '../../src/projections/projection/projection.ts';
import { ownerV1, placeV1, thingV1 } from './things.ts';

/** The read models of `things.ts` in several partitions, which a Citus cluster distributes: without relations and unique columns. */
export const distributedThings: readonly Projection[] = [thingV1, ownerV1, placeV1].map((projection) =>
  Object.freeze({
    ...projection,
    partitions: 4,
    relations: {},
    uniqueIndexes: [],
    columns: withoutUnique(projection.columns),
  }),
);

function withoutUnique(columns: Columns): Columns {
  return Object.fromEntries(
    Object.entries(columns).map(([name, column]) => {
      const { flags } = column;
      return [name, flags.unique ? { ...column, flags: { ...flags, unique: false, index: true } } : column];
    }),
  );
}
