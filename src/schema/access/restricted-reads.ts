import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import { matchesFilter } from '../../projections/queries/matches-filter.ts';
import type { ResponseQuery, ResponseRead } from '../../projections/queries/response-query.ts';
import type { AggregateQuery, RowFilter } from '../../projections/queries/row-query.ts';
import type { ReadModels, RowReads, RowVersion } from '../contract/operation-context.ts';
import { type Guard, noRows } from './guard.ts';

/**
 * Restricts reads to what one viewer may see: every statement has the access rules in its `where`, and reads no column that the viewer may
 * not read. All reads of an operation go through here, so no read path can skip the rules.
 */
export function restrictReads(reads: ReadModels, guard: Guard): ReadModels {
  const rows: RowReads = {
    async findByKeys(projection, keys, columns, where = null) {
      guard.checkColumns(projection, [...columns, ...filterColumns(where)]);
      return reads.findByKeys(projection, keys, columns, restricted(guard, projection, where));
    },
    async findByUnique(projection, by, values, columns, where = null) {
      guard.checkColumns(projection, [...by, ...columns, ...filterColumns(where)]);
      return reads.findByUnique(projection, by, values, columns, restricted(guard, projection, where));
    },
    async findPage(projection, query) {
      return reads.findPage(projection, restrictedQuery(guard, projection, query));
    },
    async count(projection, where, upTo) {
      guard.checkColumns(projection, filterColumns(where));
      return reads.count(projection, restricted(guard, projection, where), upTo);
    },
    async findRelated(projection, column, value, query) {
      guard.checkColumns(projection, [column]);
      return reads.findRelated(projection, column, value, restrictedQuery(guard, projection, query));
    },
    async countRelated(projection, column, value, where, upTo) {
      guard.checkColumns(projection, [column, ...filterColumns(where)]);
      return reads.countRelated(projection, column, value, restricted(guard, projection, where), upTo);
    },
    async aggregate(projection, query) {
      return reads.aggregate(projection, restrictedAggregate(guard, projection, query));
    },
  };
  return {
    ...reads,
    ...rows,
    async history(projection, key, columns, shown) {
      guard.checkColumns(projection, columns);
      const payloadOf = shown === 'states' ? noPayload : guard.payloadsOf(projection, shown === 'payloads');
      const visibleRows = guard.rowsOf(projection);
      const all = await reads.history(projection, key, columns, shown);
      const versions = all.map((version) => ({
        ...version,
        event: { ...version.event, payload: payloadOf(version.event) },
      }));
      if (visibleRows === null) return versions;
      // The viewer must be able to see the current row, even if it was visible before; and past states are shown only if they were visible.
      const [visible] = await reads.findByKeys(projection, [key], [], visibleRows);
      if (!visible && versions.at(-1)?.row) return [];
      const isVisible = ({ before, row }: RowVersion) => {
        const last = row ?? before;
        return last !== null && matchesFilter(visibleRows, last);
      };
      // A hidden state is not left out: the visible one before it would be taken for the state of that moment.
      if (shown === 'states')
        return versions.map((version) => (isVisible(version) ? version : { ...version, row: null }));
      return versions.filter(isVisible);
    },
    async progress(projection) {
      if (guard.rowsOf(projection) === noRows) throw new RefoldError('FORBIDDEN', `You may not read ${projection.id}.`);
      return reads.progress(projection);
    },
  };
}

/** Restricts a compiled query as {@link restrictReads} restricts reads. @throws RefoldError `UNAUTHENTICATED`, `FORBIDDEN` */
export function restrictResponse({ shape, reads }: ResponseQuery, guard: Guard): ResponseQuery {
  return { shape, reads: reads.map((read) => restrictedRead(guard, read)) };
}

function restrictedRead(guard: Guard, read: ResponseRead): ResponseRead {
  const { projection } = read;
  switch (read.kind) {
    case 'row':
    case 'one':
      guard.checkColumns(projection, [
        ...read.columns,
        ...filterColumns(read.where),
        ...(read.kind === 'row' ? read.by : []),
      ]);
      return { ...read, where: restricted(guard, projection, read.where) };
    case 'page':
      if (read.related !== null) guard.checkColumns(projection, [read.related]);
      return { ...read, query: restrictedQuery(guard, projection, read.query) };
    case 'aggregate':
      return { ...read, query: restrictedAggregate(guard, projection, read.query) };
  }
}

function restrictedAggregate(guard: Guard, projection: Projection, query: AggregateQuery): AggregateQuery {
  guard.checkColumns(projection, aggregateColumns(query));
  return { ...query, where: restricted(guard, projection, query.where) };
}

interface RowsQuery {
  readonly where: RowFilter | null;
  readonly orderBy: readonly { readonly column: string }[];
  readonly columns: readonly string[];
}

/** Adds the access rules to the query's `where`. @throws RefoldError `UNAUTHENTICATED`, `FORBIDDEN` */
export function restrictedQuery<Q extends RowsQuery>(guard: Guard, projection: Projection, query: Q): Q {
  guard.checkColumns(projection, [
    ...query.columns,
    ...filterColumns(query.where),
    ...query.orderBy.map(({ column }) => column),
  ]);
  const where = restricted(guard, projection, query.where);
  return where === query.where ? query : { ...query, where };
}

export function restricted(guard: Guard, projection: Projection, where: RowFilter | null): RowFilter | null {
  const rows = guard.rowsOf(projection);
  const inside = where && restrictedInside(guard, where);
  if (rows === null) return inside;
  return inside === null ? rows : { kind: 'and', filters: [rows, inside] };
}

/** Applies the access rules to other tables that a filter uses: rows that the viewer may not see are treated as absent. */
function restrictedInside(guard: Guard, filter: RowFilter): RowFilter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { ...filter, filters: filter.filters.map((part) => restrictedInside(guard, part)) };
    case 'not':
      return { ...filter, filter: restrictedInside(guard, filter.filter) };
    case 'related': {
      const { target, quantifier } = filter;
      const { projection } = target;
      guard.checkColumns(projection, [...filterColumns(filter.filter), ...filter.columns.map(([, other]) => other)]);
      const asked = filter.filter && restrictedInside(guard, filter.filter);
      const rows = guard.rowsOf(projection);
      if (rows === null) return { ...filter, filter: asked };
      // `every` applies only to the rows that the viewer may see.
      if (quantifier === 'every')
        return { ...filter, filter: { kind: 'or', filters: [{ kind: 'not', filter: rows }, asked ?? allRows] } };
      return { ...filter, filter: asked === null ? rows : { kind: 'and', filters: [rows, asked] } };
    }
    default:
      return filter;
  }
}

const noPayload = () => null;

const allRows: RowFilter = Object.freeze({ kind: 'and', filters: Object.freeze([]) });

function* aggregateColumns({ where, groupBy, measures, having, orderBy }: AggregateQuery): Generator<string> {
  yield* filterColumns(where);
  const by = orderBy.map((order) => order.by);
  for (const named of [...groupBy, ...measures, ...having.map(({ measure }) => measure), ...by]) {
    if ('column' in named) yield named.column;
  }
}
