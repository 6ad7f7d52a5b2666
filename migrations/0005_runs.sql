-- What processors have done, in intervals of ten seconds: written with the batch's own transaction, one row for each interval with work.
create table refold.runs (
  name text collate "C" not null,
  version integer not null,
  partition integer not null,
  kind text not null,
  -- the interval's start; ended_at is the end of its last batch
  started_at timestamptz not null,
  ended_at timestamptz not null,
  from_position bigint not null,
  to_position bigint not null,
  batches integer not null default 1,
  events bigint not null,
  rows bigint not null,
  -- reading rows, folding and writing; the commit of the last batch is not in it
  busy_ms bigint not null,
  primary key (name, version, partition, kind, started_at)
) with (fillfactor = 50); -- an interval's row is updated by each of its batches

-- What processors have done in the last minute; one that began later counts from its first interval.
create view refold.throughput as
select
  name,
  version,
  partition,
  kind,
  sum(events)::bigint as events,
  sum(rows)::bigint as rows,
  sum(events)::float8 / seconds as events_per_second,
  sum(rows)::float8 / seconds as rows_per_second,
  sum(to_position - from_position)::float8 / seconds as positions_per_second,
  sum(busy_ms)::float8 / 1000 / seconds as busy_share
from (
  select
    runs.*,
    greatest(10, extract(epoch from now() - min(started_at) over (partition by name, version, partition, kind)))::float8 as seconds
  from refold.runs
  where started_at >= now() - interval '1 minute'
) recent
group by name, version, partition, kind, seconds;
