import { sql } from 'kysely';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { readAnchors } from '../statements/log-anchors.ts';
import { builder, type Queryable, run, type TableRow } from '../statements/statement.ts';
import { filterSql } from './row-filter.ts';
import { hasKey, withinPartitions } from './row-queries.ts';

/** The changes of a version since a checkpoint, and its current position, from one snapshot. */
export interface RecentChanges {
  /**
   * One checkpoint per partition, in order; empty if the registry does not contain the version. For a live inline version, the end of the
   * log.
   */
  readonly checkpoints: readonly GlobalPosition[];
  /** Whether appends fold into the version. Its changes then appear in commit order, not in the order of positions. */
  readonly live: boolean;
  /** The server's time, in milliseconds. */
  readonly readAt: number;
  /** Changes up to here may have been deleted. */
  readonly forgotten: GlobalPosition;
  /** Each holds the keys that one batch wrote and deleted, as parsed from JSON. */
  readonly batches: readonly RecentBatch[];
  /**
   * The anchor of the lowest checkpoint; for a live inline version, that of `complete` if it is lower. Null if the registry does not
   * contain the version.
   */
  readonly anchor: string | null;
  /** The current anchor of `known`. */
  readonly knownAnchor: string | null;
  /** Undefined if the registry does not contain the version. */
  readonly serverStart: bigint | undefined;
}

/** Positions whose anchors to read in the same statement. */
export interface ToAnchor {
  /** A position that is already known. */
  readonly known: GlobalPosition | null;
  /** The position up to which a live inline version is complete: a horizon from an earlier statement. */
  readonly complete: GlobalPosition | null;
}

export interface RecentBatch {
  readonly checkpoint: GlobalPosition;
  readonly keys: readonly RowKey[];
  /** The span that wrote the rows, if it is recorded. */
  readonly traceparent: string | null;
}

type Changes = TableRow<'refold.changes'>;

/**
 * The changes of each partition after its checkpoint in `after`, at most `limit` batches each. If `after` is empty, reads only the
 * version's position.
 */
export async function readChanges(
  db: Queryable,
  { name, version }: Projection,
  after: readonly GlobalPosition[],
  limit: number,
  { known, complete }: ToAnchor = { known: null, complete: null },
): Promise<RecentChanges> {
  const rows = await db.query<{
    checkpoints: string[] | null;
    live: boolean;
    readAt: number;
    forgotten: GlobalPosition | null;
    changedAt: Changes['checkpoint'];
    upserted: Changes['upserted'] | null;
    deleted: Changes['deleted'] | null;
    traceparent: Changes['traceparent'];
    anchor: string | null;
    knownAnchor: string | null;
    serverStart: bigint;
  }>({
    name: 'read changes',
    text: `
      select
        checkpoints, read_at as "readAt", live, forgotten, changed_at as "changedAt", upserted, deleted, traceparent,
        anchor, known_anchor as "knownAnchor", server_start as "serverStart"
      from refold.recent_changes($1, $2, $3, $4, $5, $6)`,
    values: [name, version, after, limit, known, complete],
  });
  const checkpoints = (rows[0]?.checkpoints ?? []).map(globalPosition);
  const log = db.elsewhere?.log;
  const ofLog = log && rows[0] ? await readAnchors(log, leastOf(checkpoints), known) : rows[0];
  return {
    checkpoints,
    live: rows[0]?.live ?? false,
    readAt: rows[0]?.readAt ?? 0,
    forgotten: rows[0]?.forgotten ?? beginning,
    anchor: ofLog?.anchor ?? null,
    knownAnchor: ofLog?.knownAnchor ?? null,
    serverStart: ofLog?.serverStart,
    batches: rows
      .filter((row) => row.upserted !== null)
      .map((row) => ({
        checkpoint: row.changedAt,
        keys: [...(row.upserted ?? []), ...(row.deleted ?? [])],
        traceparent: row.traceparent,
      })),
  };
}

function leastOf(checkpoints: readonly GlobalPosition[]): GlobalPosition | null {
  return checkpoints.reduce<GlobalPosition | null>((a, b) => (a !== null && a < b ? a : b), null);
}

// PostgreSQL allows 1664 columns in a result.
const filtersInOneStatement = 500;

/** For each filter, whether any row with one of the keys matches it. One statement checks several hundred filters. */
export async function matchFilters(
  db: Queryable,
  readSchema: string,
  projection: Projection,
  keys: readonly RowKey[],
  filters: readonly (RowFilter | null)[],
): Promise<boolean[]> {
  const matched: boolean[] = [];
  for (let start = 0; start < filters.length; start += filtersInOneStatement) {
    const some = filters.slice(start, start + filtersInOneStatement);
    const columns = some.map((filter, index) =>
      sql<boolean | null>`bool_or(${filterSql(projection, filter, readSchema)})`.as(`m${index}`),
    );
    const ofKeys = builder
      .withSchema(readSchema)
      .selectFrom(projection.tableName)
      .select(columns)
      .where(hasKey(projection, keys));
    const within = db.elsewhere && withinPartitions(db, projection, keys);
    const query = within === undefined ? ofKeys : ofKeys.where(within);
    const [row] = await run<Record<string, boolean | null>>(db, query);
    matched.push(...some.map((_, index) => row?.[`m${index}`] === true));
  }
  return matched;
}
