-- The processes of an application, and who owns what if ownership is by lease.
--
-- Needs: nothing
-- Older processes: can run beside it

-- Running processes as they announce themselves. Work is spread evenly over them.
create table refold.processes (
  id uuid primary key,
  -- such as host:4711
  name text not null,
  -- gateway, worker or all
  role text,
  -- the projection versions that it declares, such as cart_summary@2
  versions text[] not null default '{}',
  -- units, such as `processor cart_summary@2/0`: those that it could maintain, those that it maintains, and those of them that it keeps at any load
  declares text[] not null,
  owns text[] not null,
  keeps text[] not null,
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp(),
  -- the payload versions that it can read, as family → type → version; only types above version 1. It leaves other events to a process that can
  payload_versions jsonb not null default '{}',
  -- the versions of reactors that it declares, as name → versions; only reactors that have others than version 1
  reactor_versions jsonb not null default '{}'
) with (fillfactor = 50); -- updated by each heartbeat

-- The owner of each unit, and until when unless it renews the lease, by this server's clock. Used instead of advisory locks behind a pooler in
-- transaction mode.
create table refold.leases (
  kind text not null,
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  -- a new one for each grant
  holder uuid not null,
  expires_at timestamptz not null,
  primary key (kind, name, version, partition)
) with (fillfactor = 50); -- updated by each renewal
