import { RefoldError } from '../../errors.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { mapMessages } from '../contract/live-messages.ts';
import type { LiveListUpdate, LiveReadModels, LiveRow } from '../contract/operation-context.ts';
import type { Guard } from './guard.ts';
import { restrictedQuery } from './restricted-reads.ts';

/** Restricts subscriptions to what one viewer may see; see `restrictReads`. */
export function restrictLive(live: LiveReadModels, guard: Guard): LiveReadModels {
  return {
    row(projection, key, columns, options) {
      guard.checkColumns(projection, columns);
      const rows = guard.rowsOf(projection);
      if (rows === null) return live.row(projection, key, columns, options);
      // A row may become visible or invisible, so it is subscribed to as a list of at most one row.
      const where: RowFilter = { kind: 'and', filters: [rows, ...keyFilters(projection, key)] };
      return onlyRow(live.list(projection, { where, orderBy: [], first: 1, columns }, options));
    },
    list: (projection, query, options) => live.list(projection, restrictedQuery(guard, projection, query), options),
    changes(projection, query, options) {
      guard.checkColumns(projection, [...query.columns, ...filterColumns(query.where)]);
      // For a removed row, it is unknown whether the viewer could see it.
      if (guard.rowsOf(projection) !== null)
        throw new RefoldError(
          'FORBIDDEN',
          `The changes of ${projection.graphql.type} are for those who may read all of its rows. Subscribe to '${projection.graphql.list}' instead.`,
        );
      return live.changes(projection, query, options);
    },
  };
}

function keyFilters({ keyColumns }: Projection, key: RowKey): RowFilter[] {
  return keyColumns.map((column, index) => ({ kind: 'compare', column, operator: 'eq', value: key[index] }));
}

function onlyRow(updates: AsyncIterableIterator<LiveListUpdate>): AsyncIterableIterator<LiveRow> {
  return mapMessages(updates, rowOf);
}

// Subscribers with the same update share the row.
const rowsOfUpdates = new WeakMap<LiveListUpdate, LiveRow>();

function rowOf(update: LiveListUpdate): LiveRow {
  const { snapshot, entered, changed, position } = update;
  const row = rowsOfUpdates.get(update) ?? { row: (snapshot ?? [...entered, ...changed])[0] ?? null, position };
  rowsOfUpdates.set(update, row);
  return row;
}
