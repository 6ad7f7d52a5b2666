-- One row for each reactor: where it is, who owns it, how it fares.
create table refold.reactors (
  name text collate "C" primary key,
  -- everything up to here is handled, left out, or kept as a dead letter
  checkpoint bigint not null,
  -- the fence: checkpoint and dead letters are written only under the epoch that the owner was given
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle' check (status in ('idle', 'running', 'stopped')),
  error jsonb,
  -- an operator has it wait
  paused boolean not null default false,
  -- counts the operators' steps after which its owner begins anew
  generation integer not null default 1,
  events_handled bigint not null default 0,
  events_skipped bigint not null default 0,
  declared_at timestamptz not null default now(),
  started_at timestamptz,
  updated_at timestamptz not null default now()
) with (fillfactor = 50);

-- Events that a reactor has given up on, and those that wait behind one of the same key.
create table refold.reactor_letters (
  reactor text collate "C" not null references refold.reactors on delete cascade,
  position bigint not null,
  key text not null,
  event_type text not null,
  stream_id text not null,
  -- null: the event waits behind an earlier one of its key
  error jsonb,
  attempts integer not null,
  -- what an operator has asked for, until the owner has done it
  requested text check (requested in ('retry', 'discard')),
  at timestamptz not null default now(),
  primary key (reactor, position)
);
create index reactor_letters_of_key on refold.reactor_letters (reactor, key, position);
create index requested_reactor_letters on refold.reactor_letters (reactor, key) where requested is not null;

-- The audit log of what was done to reactors by hand, and of their beginnings.
create table refold.reactor_steps (
  id bigint generated always as identity primary key,
  reactor text collate "C" not null,
  step text not null,
  -- the checkpoint before and after
  from_position bigint,
  to_position bigint not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default now()
);
create index steps_of_reactor on refold.reactor_steps (reactor, id);
