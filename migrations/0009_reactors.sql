-- Reactors: their checkpoints, versions, dead letters, attempts, handlers that wait, and the audit log of operators' steps.
--
-- Needs: nothing
-- Older processes: can run beside it

create table refold.reactors (
  name text collate "C" primary key,
  -- everything up to here is handled, skipped, or a dead letter
  checkpoint bigint not null,
  -- the checkpoint with its anchor, such as '1042.9f3c21ab'
  anchor text,
  -- the fence: checkpoint and dead letters are written only under the epoch that the owner was given
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  -- by an operator
  paused boolean not null default false,
  -- counts operators' steps after which the owner begins again
  generation integer not null default 1,
  events_handled bigint not null default 0,
  events_skipped bigint not null default 0,
  -- outcomes of steps before this time are deleted: a rewind to before it would run those steps again, and is refused
  steps_kept_since timestamptz,
  -- the event types that handlers wait for, whose events up to the checkpoint are in refold.awaited_events as far as a handler may need them
  awaits text[] not null default '{}',
  declared_at timestamptz not null default now(),
  started_at timestamptz,
  updated_at timestamptz not null default now()
) with (fillfactor = 50); -- updated by each batch

-- The versions of reactors, except a version 1 with which a reactor began. The highest version that begins before the position of an event handles
-- it, whenever that is.
create table refold.reactor_versions (
  reactor text collate "C" not null references refold.reactors on delete cascade,
  version integer not null,
  -- it handles the events after this position: no earlier version has begun to handle any of them. 0 if the reactor began with it
  from_position bigint not null,
  begun_at timestamptz not null default now(),
  primary key (reactor, version)
);

-- Dead letters of reactors, and events that wait behind one of the same key.
create table refold.reactor_letters (
  reactor text collate "C" not null references refold.reactors on delete cascade,
  position bigint not null,
  key text not null,
  event_type text not null,
  stream_id text not null,
  -- null: the event waits behind an earlier one of its key
  error jsonb,
  attempts integer not null,
  -- an operator's request, until the owner has done it
  requested text check (requested in ('retry', 'discard')),
  at timestamptz not null default now(),
  primary key (reactor, position)
);
create index reactor_letters_of_key on refold.reactor_letters (reactor, key, position);
create index requested_reactor_letters on refold.reactor_letters (reactor, key) where requested is not null;

-- The attempts of each reactor to handle an event that have not succeeded yet. Written before a handler runs, so the next owner knows an event that
-- ends its process. Not in refold.reactors: a handler would wait for the row while the checkpoint is written.
create table refold.reactor_attempts (
  reactor text collate "C" primary key references refold.reactors on delete cascade,
  -- the fence: of the last owner that has written it, or has begun a version
  epoch bigint not null,
  -- the process that has written it
  process text not null,
  -- by position: {"1042": {"failed": 2, "lost": 1, "running": true}}
  events jsonb not null,
  -- the highest position of an event of which a handler has run: a new version handles the events after it
  begun_position bigint not null default 0
) with (fillfactor = 50); -- updated by each attempt

-- Events whose handlers wait, for a time or for another event: from the first wait of the handler until the handler has ended. The outcome of a wait
-- is in refold.append_keys, as the outcomes of other steps. If a dead letter has the same position, only its retry runs the handler again.
create table refold.reactor_instances (
  reactor text collate "C" not null references refold.reactors on delete cascade,
  -- the event
  position bigint not null,
  event_id uuid not null,
  event_type text not null,
  stream_id text not null,
  -- its ordering key
  key text not null,
  -- the present wait: the name of the step and the fingerprint of its input, as refold.append_keys will have it
  step text not null,
  work text not null,
  -- the types and the key of the event that it waits for; no types: it waits for a time only
  types text[] not null,
  awaited_key text collate "C" not null,
  -- the positions of the awaited events that the handler has received already
  received bigint[] not null,
  -- null: it waits without end
  due timestamptz,
  since timestamptz not null default clock_timestamp(),
  -- the wait has its outcome, and the handler has to run again
  woken boolean not null default false,
  primary key (reactor, position)
);
create index instances_of_awaited_key on refold.reactor_instances (reactor, awaited_key) where not woken;
create index due_instances on refold.reactor_instances (reactor, due) where not woken;
create index woken_instances on refold.reactor_instances (reactor, position) where woken;

-- The events that handlers may wait for, by the key that the declaration computes. Written before the checkpoint passes them. A wait that begins
-- later finds them here. Deleted when the reactor has finished everything before them.
create table refold.awaited_events (
  reactor text collate "C" not null references refold.reactors on delete cascade,
  key text collate "C" not null,
  type text collate "C" not null,
  position bigint not null,
  -- a restored log may have another event at the position
  event_id uuid not null,
  primary key (reactor, key, type, position)
);
create index awaited_events_by_position on refold.awaited_events (reactor, position);

-- The audit log of what operators do to reactors, and of their beginnings.
create table refold.reactor_operations (
  id bigint generated always as identity primary key,
  reactor text collate "C" not null,
  operation text not null,
  -- the checkpoint before and after
  from_position bigint,
  to_position bigint not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default now()
);
create index operations_of_reactor on refold.reactor_operations (reactor, id);
