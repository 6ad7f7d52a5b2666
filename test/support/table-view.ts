import type { Projection } from '../../src/projections/projection/projection.ts';
import type { TableView } from '../../src/runtime/reads/follow-tables.ts';

/** A view of the registry in which the rows of these versions are where they are given, and all others where they are declared. */
export function tableView(...tables: readonly Projection[]): TableView {
  const stored = (projection: Projection) => tables.find(({ id }) => id === projection.id) ?? projection;
  return { stored, storedNow: () => stored, stateOf: () => 'active', refresh: async () => {} };
}

/** A view that sees these tables until it is refreshed, and then where the rows are now. */
export function outdatedView(before: readonly Projection[], ...now: readonly Projection[]): TableView {
  let view = tableView(...before);
  return {
    stored: (projection) => view.stored(projection),
    storedNow: () => view.storedNow(),
    stateOf: () => 'active',
    async refresh() {
      view = tableView(...now);
    },
  };
}
