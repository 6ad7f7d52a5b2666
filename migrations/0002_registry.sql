-- The registry lives with the read tables: rows, checkpoints and states change in one transaction.

create table refold.projections (
  name text collate "C" not null,
  version integer not null,
  state text not null check (state in ('building', 'ready', 'active', 'retired', 'failed')),
  table_schema text not null,
  table_name text not null,
  table_fingerprint text not null,
  code_fingerprint text not null,
  definition jsonb not null,
  -- set by a rollback: the version stays ready, whatever its activation rule says, until an operator activates it
  held_reason text,
  -- counts the tables that the version has had: a rebuild makes the next one
  generation integer not null default 1,
  declared_at timestamptz not null default now(),
  state_changed_at timestamptz not null default now(),
  primary key (name, version)
);

-- One row for each processor (later: for each partition of one): where it is, who owns it, how it fares.
create table refold.processors (
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  checkpoint bigint not null default 0,
  -- the fence: a batch commits only under the epoch that its owner was given
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  started_at timestamptz,
  updated_at timestamptz not null default now(),
  primary key (name, version, partition),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50);

-- Who maintains what, where ownership is by lease: the holder, until when unless renewed, by this server's clock.
create table refold.leases (
  kind text not null,
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  -- a new one for each grant
  holder uuid not null,
  expires_at timestamptz not null,
  primary key (kind, name, version, partition)
) with (fillfactor = 50);

-- The audit log of every step in the life of a version.
create table refold.transitions (
  id bigint generated always as identity primary key,
  name text collate "C" not null,
  version integer not null,
  from_state text,
  to_state text not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default now()
);
create index transitions_of_version on refold.transitions (name, version, id);

-- One row for each batch that changed rows of a version that may be subscribed to: which keys, at which checkpoint.
create table refold.changes (
  name text collate "C" not null,
  version integer not null,
  checkpoint bigint not null,
  upserted jsonb not null,
  deleted jsonb not null,
  at timestamptz not null default now(),
  primary key (name, version, checkpoint)
);
create index changes_by_age on refold.changes (at);

-- Tables that nothing is read from any more, but for what is under way; dropped when it is time.
create table refold.old_tables (
  table_schema text not null,
  table_name text not null,
  drop_after timestamptz not null,
  primary key (table_schema, table_name)
);

-- A version's table being built anew beside the one that serves; it takes over at the end. At most one for each version.
create table refold.rebuilds (
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  checkpoint bigint not null default 0,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  requested_by text not null,
  reason text not null,
  requested_at timestamptz not null default now(),
  started_at timestamptz,
  updated_at timestamptz not null default now(),
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50);

-- Events that could not be folded into a row, and those that wait behind one for the same row. They belong to one table: a rebuild
-- meets the same events again, and keeps its own.
create table refold.dead_letters (
  id bigint generated always as identity primary key,
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  -- the row's key as a JSON array; null where the key itself could not be told
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
