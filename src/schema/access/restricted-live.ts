import { RefoldError } from '../../errors.ts';
import type { Projection, RowKey } from '../../projections/declaration/projection.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { mapMessages } from '../contract/live-messages.ts';
import type { LiveListUpdate, LiveReadModels, LiveRow } from '../contract/operation-context.ts';
import type { Guard } from './guard.ts';
import { restrictedQuery } from './restricted-reads.ts';

/** Subscriptions as one viewer may have them; see `restrictReads`. */
export function restrictLive(live: LiveReadModels, guard: Guard): LiveReadModels {
  return {
    row(projection, key, columns, options) {
      guard.checkColumns(projection, columns);
      const rows = guard.rowsOf(projection);
      if (rows === null) return live.row(projection, key, columns, options);
      // A row that one may see at times only is a list of one row at most.
      const where: RowFilter = { kind: 'and', filters: [rows, ...keyFilters(projection, key)] };
      return onlyRow(live.list(projection, { where, orderBy: [], first: 1, columns }, options));
    },
    list: (projection, query, options) => live.list(projection, restrictedQuery(guard, projection, query), options),
    changes(projection, query, options) {
      guard.checkColumns(projection, [...query.columns, ...filterColumns(query.where)]);
      // Nothing tells of a removed row whether the viewer could see it.
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

// The same row for all who are given the same update.
const rowsOfUpdates = new WeakMap<LiveListUpdate, LiveRow>();

function rowOf(update: LiveListUpdate): LiveRow {
  const { snapshot, entered, changed, position } = update;
  const row = rowsOfUpdates.get(update) ?? { row: (snapshot ?? [...entered, ...changed])[0] ?? null, position };
  rowsOfUpdates.set(update, row);
  return row;
}
