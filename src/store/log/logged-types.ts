import type { Queryable } from '../statements/statement.ts';

/** An event type that the log holds, under its stored names. */
export interface LoggedType {
  readonly family: string;
  readonly type: string;
}

// The index of streams has all families. Types have no index, so a large log is read in parts. Up to twice this number of events, the log is
// read as a whole. Above, a type with less than one event in some thousands can be missed.
const sampledEvents = 10_000;
// Read of each family, in the order of its streams: a family with few events is always found with its types.
const sampledOfFamily = 1000;

/**
 * The event types that the log holds. Reads at most 30,000 events, and 1,000 more of each family, however long the log is.
 *
 * @param before only events that were recorded before this time
 */
export function readLoggedTypes(db: Queryable, before: string | null = null): Promise<LoggedType[]> {
  return db.query<LoggedType>({
    text: `
      with recursive families as (
        -- a loose index scan: one look-up for each family
        (select family as name from refold.streams order by family limit 1)
        union all
        select (select family from refold.streams where family > families.name order by family limit 1)
        from families
        where families.name is not null
      ), bounds as (
        select min(position) as first, max(position) as last from refold.events
      ), sampled as (
        select event.family, event.type, event.recorded_at
        from families
        cross join lateral (
          select family, type, recorded_at
          from refold.events
          where family = families.name
          order by family, stream_id, stream_position
          limit $2
        ) event
        union all
        (select family, type, recorded_at from refold.events order by position limit $3)
        union all
        (select family, type, recorded_at from refold.events order by position desc limit $3)
        union all
        -- ten events at each of many places
        select event.family, event.type, event.recorded_at
        from bounds
        cross join generate_series(1, $3 / 10) as place
        cross join lateral (
          select family, type, recorded_at
          from refold.events
          where bounds.last - bounds.first >= 2 * $3::bigint
            and position >= bounds.first + (bounds.last - bounds.first) * place / ($3 / 10 + 1)
          order by position
          limit 10
        ) event
      )
      select distinct family, type
      from sampled
      where $1::timestamptz is null or recorded_at < $1
      order by family, type`,
    values: [before, sampledOfFamily, sampledEvents],
  });
}
