-- The registry: projection versions, their transitions, and comparisons of their rows with the log. It is in the database of the read tables, so
-- rows, checkpoints and states change in one transaction.
--
-- Needs: nothing
-- Older processes: can run beside it

-- One row for each declared version.
create table refold.projections (
  name text collate "C" not null,
  version integer not null,
  state text not null check (state in ('building', 'ready', 'active', 'retired', 'failed')),
  -- what keeps a ready version from becoming active by itself, and why: an operator (a rollback), or a rule of its declaration
  held_by text check (held_by in ('operator', 'breaking', 'verification', 'dead-letters', 'partial')),
  held_reason text,
  -- an operator has paused it: no process maintains it, whatever its state
  paused_at timestamptz,
  paused_by text,
  paused_reason text,
  table_schema text not null,
  table_name text not null,
  table_fingerprint text not null,
  code_fingerprint text not null,
  definition jsonb not null,
  -- counts the tables that the version has had: each rebuild adds one
  generation integer not null default 1,
  declared_at timestamptz not null default now(),
  state_changed_at timestamptz not null default now(),
  primary key (name, version)
);

-- The audit log of all transitions of versions.
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

-- Comparisons of a version's rows with the log: before its activation, and repeated as an audit. A process claims one by changing its row, so
-- it needs no lock and no session while it folds the log.
create table refold.verifications (
  name text collate "C" not null,
  version integer not null,
  kind text not null check (kind in ('activation', 'audit')),
  -- the number of completed ones; the next audit compares other rows
  round bigint not null default 0,
  -- the process that compares now, and until when its claim holds unless renewed
  owner text,
  busy_until timestamptz,
  next_at timestamptz not null default now(),
  -- the result of the last one, and its position
  ended_at timestamptz,
  position bigint,
  rows_compared bigint,
  differences bigint,
  -- of all completed ones
  total_rows_compared bigint not null default 0,
  total_differences bigint not null default 0,
  -- the last differences found, kept until the version is rebuilt
  samples jsonb,
  found_at timestamptz,
  primary key (name, version, kind),
  foreign key (name, version) references refold.projections on delete cascade
) with (fillfactor = 50);
