import type { VersionState } from '../../projections/projection/version-map.ts';
import type { Queryable } from '../statements/statement.ts';

/** Which entries of the audit log to find. All conditions must hold. */
export interface AuditFilter {
  readonly projection?: string | undefined;
  readonly version?: number | undefined;
  readonly reactor?: string | undefined;
  /** Exactly this name. */
  readonly actor?: string | undefined;
  /** ISO 8601: at this time or later. */
  readonly since?: string | undefined;
  /** ISO 8601: before this time. */
  readonly until?: string | undefined;
}

/** What somebody or a process did with a version or a reactor, when and why. */
export interface AuditEntry {
  /** Its number in its own log: of versions, or of reactors. */
  readonly number: bigint;
  readonly at: string;
  /** Such as `cart_summary@2`, or the name of a reactor. */
  readonly of: string;
  readonly isReactor: boolean;
  /** Such as `building → ready`, `operation` or `rewound`. */
  readonly operation: string;
  readonly from: VersionState | null;
  readonly to: VersionState | null;
  readonly fromPosition: bigint | null;
  readonly toPosition: bigint | null;
  readonly actor: string;
  readonly reason: string;
}

/** One of the two logs: transitions of versions, or operations on reactors. */
export type AuditLog = 'versions' | 'reactors';

const ofVersions = `
  select
    id as number,
    at,
    name || '@' || version as of,
    false as "isReactor",
    case when from_state is null then to_state when from_state = to_state then 'operation' else from_state || ' → ' || to_state end as operation,
    from_state as "from",
    to_state as "to",
    null::bigint as "fromPosition",
    null::bigint as "toPosition",
    actor,
    reason
  from refold.transitions
  where id < $1 and ($2::text is null or name = $2) and ($3::integer is null or version = $3)
  order by id desc
  limit $4`;

const ofReactors = `
  select
    id as number,
    at,
    reactor as of,
    true as "isReactor",
    operation,
    null::text as "from",
    null::text as "to",
    from_position as "fromPosition",
    to_position as "toPosition",
    actor,
    reason
  from refold.reactor_operations
  where id < $1 and ($2::text is null or reactor = $2) and ($3::integer is null)
  order by id desc
  limit $4`;

/**
 * The matching entries of one log before a number, the latest first, among at most `size` that the statement visits. `last` is the lowest
 * number that was visited; null if there are no more.
 */
export async function readAudit(
  db: Queryable,
  log: AuditLog,
  { before, size, filter }: { readonly before: bigint | null; readonly size: number; readonly filter: AuditFilter },
): Promise<{ readonly entries: AuditEntry[]; readonly last: bigint | null }> {
  const isVersions = log === 'versions';
  const rows = await db.query<AuditEntry & { isMatch: boolean; visited: number }>({
    text: `
      with visited as materialized (${isVersions ? ofVersions : ofReactors})
      select
        *,
        ($5::text is null or actor = $5)
          and ($6::timestamptz is null or at >= $6)
          and ($7::timestamptz is null or at < $7) as "isMatch",
        (select count(*)::integer from visited) as visited
      from visited
      order by number desc`,
    values: [
      before ?? highest,
      isVersions ? (filter.projection ?? null) : (filter.reactor ?? null),
      isVersions ? (filter.version ?? null) : null,
      size,
      filter.actor ?? null,
      filter.since ?? null,
      filter.until ?? null,
    ],
  });
  const last = rows.at(-1);
  // Numbers follow the time: before an entry that is too old, all are.
  const isOver = filter.since !== undefined && last !== undefined && last.at < filter.since;
  return {
    entries: rows.filter(({ isMatch }) => isMatch),
    last: last && last.visited === size && !isOver ? last.number : null,
  };
}

const highest = 9_223_372_036_854_775_807n;
