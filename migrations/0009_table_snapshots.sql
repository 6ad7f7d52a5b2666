-- Copies of read tables, each with the position that it holds: what a rebuild can start from instead of the first event. Dead letters
-- that the table had then are in refold.dead_letters under the copy's name.
create table refold.table_snapshots (
  id bigint generated always as identity primary key,
  name text collate "C" not null,
  version integer not null,
  table_schema text not null,
  table_name text not null,
  checkpoint bigint not null,
  row_count bigint not null,
  bytes bigint not null,
  -- of the version's processor at that moment: when the next automatic one is due
  events_folded bigint not null,
  table_fingerprint text not null,
  code_fingerprint text not null,
  -- taken by the declared schedule, which keeps some of its own and drops older ones
  automatic boolean not null,
  actor text not null,
  reason text not null,
  taken_at timestamptz not null default now(),
  foreign key (name, version) references refold.projections on delete cascade
);
create index table_snapshots_of_version on refold.table_snapshots (name, version, checkpoint, id);

-- Events that an operator has thrown away for one row: whatever folds the log again leaves them out.
create table refold.discards (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  -- the row's key as a JSON array; JSON null where the key itself could not be told
  key jsonb not null,
  event_type text not null,
  stream_id text not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default now(),
  primary key (name, version, position, key),
  foreign key (name, version) references refold.projections on delete cascade
);

alter table refold.rebuilds
  -- beside: a table of its own, until it takes over. in place: the version's own processor builds the version's own table anew
  add column form text not null default 'beside' check (form in ('beside', 'in place')),
  -- the position that it started at: 0, or that of a snapshot
  add column started_at_position bigint not null default 0,
  add column snapshot_id bigint,
  -- in place: the state that the version goes back to when it has caught up
  add column state_before text;
