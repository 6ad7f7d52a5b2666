-- The processes that maintain something, as they announce themselves: so that work is spread evenly over them.
create table refold.processes (
  id uuid primary key,
  -- such as host:4711
  name text not null,
  -- units, as `processor cart_summary@2/0`: what it could maintain, what it maintains, and what of that it keeps whatever others do
  declares text[] not null,
  owns text[] not null,
  keeps text[] not null,
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
