import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { relatedFilters, retargeted } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import type { RowReads } from '../../schema/contract/operation-context.ts';
import { isTableError } from '../../store/postgres/database-errors.ts';
import type { VersionView } from '../versions/versions.ts';
import type { OperationReadModels } from './operation-read-models.ts';

/** Where the rows of each version are, as this process knows it. */
export type TableView = Pick<VersionView, 'stored' | 'storedNow' | 'stateOf' | 'refresh'>;

/**
 * The reads of one operation, which follow the rows of a version to another table. The version map of an operation names the tables of its start,
 * and a rebuild may replace one of them at any time. A wait that ends because of that continues with the new table. A read whose table is gone is
 * repeated with the new one. In a snapshot it can't be: the snapshot is from before. Then the operation is `lost` and must be executed again.
 */
export function followTables(
  reads: OperationReadModels,
  versions: TableView,
  { snapshot }: { readonly snapshot: boolean },
): OperationReadModels {
  // Of one moment before the snapshot: a table that takes over later may be incomplete in it.
  const atStart = versions.storedNow();
  const used = new Map<string, Projection>();
  let moves = 0;
  let losing: Promise<boolean> | undefined;
  let lost = false;

  function stored(projection: Projection): Projection {
    const table = used.get(projection.id) ?? atStart(projection);
    used.set(projection.id, table);
    return table;
  }

  function filterOf<F extends RowFilter | null | undefined>(where: F): F | RowFilter {
    return where && relatedFilters(where).length > 0 ? retargeted(where, stored) : where;
  }

  function queryOf<Q extends { readonly where: RowFilter | null }>(query: Q): Q {
    const where = filterOf(query.where);
    return where === query.where ? query : { ...query, where };
  }

  /** Asks the registry where the rows are now. Returns whether any of these tables was replaced. */
  async function follow(tables: readonly Projection[]): Promise<boolean> {
    await versions.refresh().catch(() => {}); // the caller's error says more
    const moved = tables.filter((table) => hasMoved(versions, table));
    for (const table of moved) used.set(table.id, versions.stored(table));
    moves += moved.length;
    return moved.length > 0;
  }

  async function read<T>(work: () => Promise<T>): Promise<T> {
    const before = moves;
    try {
      return await work();
    } catch (error) {
      if (snapshot) await loseSnapshot(error);
      else if (isTableError(error) && (moves > before || (await follow([...used.values()])))) return work();
      throw error;
    }
  }

  /** All later reads of the snapshot fail, too, with another error. They wait for the same reason. */
  async function loseSnapshot(error: unknown): Promise<void> {
    if (isTableError(error)) losing ??= follow([...used.values()]);
    if (await losing) lost = true;
  }

  const rows: RowReads = {
    findByKeys: (projection, keys, columns, where) =>
      read(() => reads.findByKeys(stored(projection), keys, columns, filterOf(where))),
    findByUnique: (projection, by, values, columns, where) =>
      read(() => reads.findByUnique(stored(projection), by, values, columns, filterOf(where))),
    findPage: (projection, query) => read(() => reads.findPage(stored(projection), queryOf(query))),
    count: (projection, where, upTo) => read(() => reads.count(stored(projection), filterOf(where), upTo)),
    findRelated: (projection, column, value, query) =>
      read(() => reads.findRelated(stored(projection), column, value, queryOf(query))),
    countRelated: (projection, column, value, where, upTo) =>
      read(() => reads.countRelated(stored(projection), column, value, filterOf(where), upTo)),
    aggregate: (projection, query) => read(() => reads.aggregate(stored(projection), queryOf(query))),
  };
  return {
    ...reads,
    ...rows,
    get lost() {
      return lost;
    },
    async waitFor(projection, position) {
      for (;;) {
        const table = stored(projection);
        try {
          return await reads.waitFor(table, position);
        } catch (error) {
          // Each repetition needs another rebuild, so it ends.
          if (!isNotReady(error) || !(await follow([table]))) throw error;
        }
      }
    },
  };
}

/** Whether the rows are in another table by now. One that is still being filled, in a rebuild in place, can't answer. */
function hasMoved(versions: TableView, table: Projection): boolean {
  const state = versions.stateOf(table.name, table.version);
  if (state !== 'active' && state !== 'ready') return false;
  return versions.stored(table).tableName !== table.tableName;
}

function isNotReady(error: unknown): boolean {
  return error instanceof RefoldError && error.code === 'PROJECTION_NOT_READY';
}
