-- Processors: how far each version has folded the log, who owns it, rebuilds, dead letters, and copies of read tables.
--
-- Needs: 0001_event_log, 0002_horizon, 0003_registry, 0004_inline
-- Older processes: can run beside it

-- One row for each partition of a version.
create table refold.processors (
  name text collate "C" not null,
  version integer not null,
  -- which partition, and of how many
  partition integer not null default 0,
  partitions integer not null default 1,
  checkpoint bigint not null default 0,
  -- the checkpoint with its anchor, such as '1042.9f3c21ab'. A restored table or log shows when the unit is claimed.
  anchor text,
  -- after a change of the number of partitions: up to where the rows of which keys were folded before: { until, layers: [{ of, checkpoints }] }
  floors jsonb,
  -- the fence: a batch commits only under the epoch that its owner was given
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  -- events that `onError: 'skip'` left out of the table
  events_skipped bigint not null default 0,
  -- how often `onError.retries` tried an event again, and the last such event: { position, attempts, message, nextAt }
  retries bigint not null default 0,
  retrying jsonb,
  started_at timestamptz,
  updated_at timestamptz not null default now(),
  primary key (name, version, partition),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50); -- updated by each batch

-- How far each processor is behind the log. `events` is exact up to 10,000 positions behind; beyond that it counts the wanted ones among the first of
-- them. `positions` also counts the gaps of rolled back appends, and events of other types.
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
  coalesce(greatest(extract(epoch from clock_timestamp() - unread.oldest), 0), 0)::float8 as seconds,
  projections.paused_at is not null as paused,
  -- the position after which a partial table begins; null for a whole one
  (projections.definition ->> 'startAfter')::bigint as starts_after
from refold.projections
join (
  select name, version, partition, refold.reached(name, version, checkpoint) as checkpoint
  from refold.processors
) processors using (name, version)
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
where projections.state <> 'retired';

-- The work of processors in intervals of ten seconds. The transaction of a batch writes it; an interval without work has no row.
create table refold.runs (
  name text collate "C" not null,
  version integer not null,
  partition integer not null,
  kind text not null,
  -- the start of the interval, and the end of its last batch
  started_at timestamptz not null,
  ended_at timestamptz not null,
  from_position bigint not null,
  to_position bigint not null,
  batches integer not null default 1,
  events bigint not null,
  rows bigint not null,
  -- reading rows, folding and writing, without the commit of the last batch
  busy_ms bigint not null,
  primary key (name, version, partition, kind, started_at)
) with (fillfactor = 50); -- updated by each batch of the interval

-- The rates of the last minute. A processor that began later counts from its first interval.
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

-- Rebuilds of versions, at most one for each.
create table refold.rebuilds (
  name text collate "C" not null,
  version integer not null,
  -- beside: a new table, which takes over at the end. in place: the version's own processor builds its own table again.
  form text not null default 'beside' check (form in ('beside', 'in place')),
  table_name text not null,
  -- the snapshot that it started from, and its position; null and 0 if it started from the first event
  snapshot_id bigint,
  started_at_position bigint not null default 0,
  -- these as in refold.processors
  checkpoint bigint not null default 0,
  anchor text,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  -- in place: the state to which the version returns when it has caught up
  state_before text,
  -- why a complete table waits for an operator; null while it is being built
  held_reason text,
  -- an operator accepts the table with its dead letters
  dead_letters_accepted boolean not null default false,
  requested_by text not null,
  reason text not null,
  requested_at timestamptz not null default now(),
  started_at timestamptz,
  updated_at timestamptz not null default now(),
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50);

-- Events that could not be folded into a row, and events that wait behind one for the same row. They belong to one table: a rebuild meets the same
-- events again, and keeps its own.
create table refold.dead_letters (
  id bigint generated always as identity primary key,
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  -- the row's key as a JSON array; null if the key itself could not be computed
  key jsonb,
  position bigint not null,
  event_type text not null,
  stream_id text not null,
  -- null: the event waits behind an earlier one of its row
  error jsonb,
  attempts integer not null default 1,
  at timestamptz not null default now(),
  foreign key (name, version) references refold.projections on delete cascade
);
create index dead_letters_of_table on refold.dead_letters (table_name, key, position);
-- An operator pages through them.
create index dead_letters_in_order on refold.dead_letters (table_name, id);
-- Every partition of an evolveSql may meet an event of which no key is known; the first one keeps it.
create unique index dead_letters_without_key on refold.dead_letters (table_name, position) where key is null;

-- Events that an operator discarded for one row. Every later fold of the log leaves them out.
create table refold.discards (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  -- the row's key as a JSON array; JSON null if the key itself could not be computed
  key jsonb not null,
  event_type text not null,
  stream_id text not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default now(),
  -- when it was recalled. Later folds include the event; the present table lacks it, so the row stays until another table has taken over.
  recalled_at timestamptz,
  primary key (name, version, position, key),
  foreign key (name, version) references refold.projections on delete cascade
);

-- Events that `onError: 'skip'` left out of a table. They hold an activation as dead letters do. Time travel and `refold verify` leave out those that
-- the database refused.
create table refold.skips (
  name text collate "C" not null,
  version integer not null,
  -- a table of the version: the serving one, one of a rebuild, or a snapshot's copy
  table_name text not null,
  position bigint not null,
  -- null if the key could not be computed
  key jsonb,
  -- by the database: evolve does not fail on it again
  refused boolean not null,
  foreign key (name, version) references refold.projections on delete cascade
);
create index skips_of_table on refold.skips (table_name, position);
create unique index skips_without_key on refold.skips (table_name, position) where key is null;

-- Copies of read tables with their positions, from which a rebuild can start. Dead letters of the table are in refold.dead_letters under the
-- copy's name.
create table refold.table_snapshots (
  id bigint generated always as identity primary key,
  name text collate "C" not null,
  version integer not null,
  table_schema text not null,
  table_name text not null,
  checkpoint bigint not null,
  row_count bigint not null,
  bytes bigint not null,
  -- of the version's processor then: decides when the next automatic one is due
  events_folded bigint not null,
  -- the events that its rows lack because they had been discarded, as [position, key]. A rebuild can start from it while they still are.
  lacks jsonb not null default '[]',
  table_fingerprint text not null,
  code_fingerprint text not null,
  -- taken by the declared schedule, which drops older ones of its own
  automatic boolean not null,
  actor text not null,
  reason text not null,
  taken_at timestamptz not null default now(),
  foreign key (name, version) references refold.projections on delete cascade
);
create index table_snapshots_of_version on refold.table_snapshots (name, version, checkpoint, id);

-- Tables that nothing reads any more, except reads that are under way. Dropped after `drop_after`.
create table refold.old_tables (
  table_schema text not null,
  table_name text not null,
  drop_after timestamptz not null,
  primary key (table_schema, table_name)
);

-- Refuses a value inside a statement. Values from the SQL of a declaration are checked, and never rounded or cut.
create function refold.refuse_value(value anyelement, problem text) returns anyelement language plpgsql volatile as $$
begin
  raise exception '%, found %.', problem, value using errcode = 'data_exception';
end $$;
