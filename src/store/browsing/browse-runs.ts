import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../statements/statement.ts';

/** What one processor of a version did in an interval of ten seconds. */
export interface Run {
  readonly kind: 'processor' | 'rebuild';
  readonly partition: number;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly fromPosition: GlobalPosition;
  readonly toPosition: GlobalPosition;
  readonly batches: number;
  readonly events: bigint;
  readonly rows: bigint;
  readonly busyMs: bigint;
}

// A version has at most so many partitions.
const units = `
  select partition, kind
  from generate_series(0, (select max(partition) from refold.processors where name = $1 and version = $2)) as partition
  cross join (values ('processor'), ('rebuild')) as kinds (kind)`;

/** The runs of a version before a time, the latest first. Visits at most `limit` of each partition. */
export async function readRuns(
  db: Queryable,
  { name, version, before, limit }: { name: string; version: number; before: string | null; limit: number },
): Promise<Run[]> {
  return db.query<Run>({
    text: `
      select
        run.kind,
        run.partition,
        started_at as "startedAt",
        ended_at as "endedAt",
        from_position as "fromPosition",
        to_position as "toPosition",
        batches,
        events,
        rows,
        busy_ms as "busyMs"
      from (${units}) as unit
      cross join lateral (
        select *
        from refold.runs
        where name = $1 and version = $2 and partition = unit.partition and kind = unit.kind
          and ($3::timestamptz is null or started_at < $3)
        order by started_at desc
        limit $4
      ) as run
      order by started_at desc, run.kind, run.partition
      limit $4`,
    values: [name, version, before, limit],
  });
}

/** The lag of a version at a time in the past. */
export interface LagPoint {
  readonly at: string;
  readonly lag: bigint;
}

/**
 * How the lag of a version in positions developed, the oldest first. The log's end at a time follows from the times of its events, the version's
 * position from its run log: each point takes a few lookups.
 */
export async function readLagTrend(
  db: Queryable,
  { name, version, minutes, points }: { name: string; version: number; minutes: number; points: number },
): Promise<LagPoint[]> {
  return db.query<LagPoint>({
    text: `
      with moments as (
        select clock_timestamp() - make_interval(secs => $3::float8 * 60 * step / $4::integer) as at
        from generate_series(0, $4 - 1) as step
      )
      select
        at,
        greatest(0, refold.position_before(at) - coalesce(reached, refold.position_before(at))) as lag
      from moments
      cross join lateral (
        select refold.reached(
          $1, $2,
          min(coalesce(
            (
              select to_position
              from refold.runs
              where name = $1 and version = $2 and partition = processor.partition and kind = 'processor' and started_at <= at
              order by started_at desc
              limit 1
            ),
            (
              select from_position
              from refold.runs
              where name = $1 and version = $2 and partition = processor.partition and kind = 'processor' and started_at > at
              order by started_at
              limit 1
            ),
            checkpoint
          ))
        ) as reached
        from refold.processors as processor
        where name = $1 and version = $2
      ) as version
      order by at`,
    values: [name, version, minutes, points],
  });
}
