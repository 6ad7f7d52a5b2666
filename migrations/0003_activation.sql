-- Who keeps a ready version from becoming active by itself: an operator (by a rollback), or its declared rule.
alter table refold.projections
  add column held_by text check (held_by in ('operator', 'breaking', 'verification'));
update refold.projections set held_by = 'operator' where held_reason is not null;

-- Comparisons of a version's rows with the log: before its activation, and again and again as an audit. Claimed by a row's change, so that
-- one process does one at a time and no lock or session is needed while the log is folded.
create table refold.verifications (
  name text collate "C" not null,
  version integer not null,
  kind text not null check (kind in ('activation', 'audit')),
  -- counts the ones that ended; an audit's next one looks at other rows
  round bigint not null default 0,
  -- who does one now, and until when that counts unless it is renewed
  owner text,
  busy_until timestamptz,
  next_at timestamptz not null default now(),
  -- what the last one found, and where
  ended_at timestamptz,
  position bigint,
  rows_compared bigint,
  differences bigint,
  -- of all that ended
  total_rows_compared bigint not null default 0,
  total_differences bigint not null default 0,
  -- the last differences found, kept until the version's rows are built anew
  samples jsonb,
  found_at timestamptz,
  primary key (name, version, kind),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50);


-- What a reader at a position has yet to read: how many of the wanted events, and since when the first of them has been there. Looks at no
-- more than `bound` positions of the log, by its key: where more are left, `exact` is false, `events` counts what was found among them, and
-- `oldest` is that of the first one found or else of the last one looked at. A function for the sake of its settings, as refold.read_events.
create function refold.unread(after bigint, wanted text[], bound int, out events bigint, out exact boolean, out oldest timestamptz)
language plpgsql stable
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
as $$
begin
  select
    count(*) filter (where next.is_wanted and next.number <= bound),
    count(*) <= bound,
    coalesce(min(next.recorded_at) filter (where next.is_wanted), max(next.recorded_at) filter (where next.number > bound))
  into events, exact, oldest
  from (
    select recorded_at, family || '.' || type = any (wanted) as is_wanted, row_number() over (order by position) as number
    from refold.events
    where position > after
    order by position
    limit bound + 1
  ) next;
end $$;

-- How far each processor is behind the log. `events` is exact up to 10,000 positions behind, and what was found among the first of them
-- beyond that; `positions` counts the holes of rolled back appends, and events of other types.
create view refold.lag as
select
  projections.name,
  projections.version,
  processors.partition,
  projections.state,
  processors.checkpoint,
  log.head,
  greatest(log.head - processors.checkpoint, 0) as positions,
  unread.events,
  unread.exact,
  coalesce(greatest(extract(epoch from clock_timestamp() - unread.oldest), 0), 0)::float8 as seconds
from refold.projections
join refold.processors using (name, version)
cross join lateral (select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head) log
cross join lateral refold.unread(
  processors.checkpoint,
  array(
    select (filter ->> 'family') || '.' || type
    from jsonb_array_elements(projections.definition -> 'filter') filter
    cross join jsonb_array_elements_text(filter -> 'types') type
  ),
  10000
) unread
where projections.state not in ('retired', 'failed');
