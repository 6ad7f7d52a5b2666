-- How the log is read: up to which position it is complete (the horizon), how a remembered position is recognized (its anchor), and pages of
-- events.
--
-- Needs: 0001_event_log
-- Older processes: can run beside it

-- The advisory locks of this database whose key is one bigint, held or waited for. pg_locks lists the locks of all databases, and splits such a key
-- into two halves: classid has the upper 32 bits, objid the lower 32. The top 16 bits of each of Refold's keys are the kind of lock
-- (src/store/server/lock-keys.ts). To read this view waits for nobody: that is how one session learns what another one is doing.
create view refold.advisory_locks as
select
  pid, -- null for a prepared transaction
  virtualtransaction,
  mode, -- 'ShareLock' or 'ExclusiveLock'
  granted,
  classid::bigint << 32 | objid::bigint as key
from pg_locks
where locktype = 'advisory'
  and objsubid = 1 -- a key of one bigint; 2 would be a key of two integers
  and database = (select oid from pg_database where datname = current_database());

-- Every transaction that inserts events carries a tag: a shared advisory lock, held until the transaction ends. Its key has 21062 (0x5246) in the
-- top 16 bits, which marks a tag, and a position in the other 48 bits, which is below every position that the transaction will draw.
-- src/store/server/lock-keys.ts has the same number.
--
-- The lock is shared, so tags never wait for each other. Nobody takes it exclusively: only its presence in refold.advisory_locks counts. A
-- lock, not a row, because it is visible to others before the commit, and disappears with its transaction, however that ends.
create view refold.tags as
select pid, virtualtransaction, key & ((1::bigint << 48) - 1) as tag -- the key without its top 16 bits
from refold.advisory_locks
where key >> 48 = 21062;

-- Tags the transaction of each writer, other programs included. Calls refold.pass_inline of migration 0005.
--
-- The first tag of a transaction is its lowest, and serves for all of its inserts: one lock per insert would fill the server's lock table.
-- The local setting that remembers it is undone by a rollback to a savepoint exactly when the lock is.
create function refold.tag_writer() returns trigger language plpgsql as $$
declare
  last bigint;
  done text; -- assigned instead of `perform`, which runs a statement and takes ten times as long
begin
  -- An insert without refold.append: nobody knows the families of its rows yet, so live inline versions of all families stop folding.
  if coalesce(current_setting('refold.appending', true), '') = '' then
    done := refold.pass_inline(null);
  end if;
  if coalesce(current_setting('refold.tag', true), '') = '' then
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    done := pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    done := set_config('refold.tag', last::text, true);
  end if;
  return null;
end $$;

create trigger tag_writer
before insert on refold.events
for each statement execute function refold.tag_writer();

-- The position up to which the log is complete for every snapshot that is taken after this function returned.
--
-- The order matters: first the ceiling, then the tags, and the events only in a later statement. A writer that drew a position up to the
-- ceiling had its tag before that. If the scan does not find the tag, the transaction has ended, and later snapshots see what it
-- committed.
create function refold.horizon() returns bigint language plpgsql volatile as $$
declare
  ceiling bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  lowest_tag bigint;
begin
  select min(tag) into lowest_tag from refold.tags;
  return least(ceiling, lowest_tag);
end $$;

-- The transactions that hold the horizon back, the lowest first.
create view refold.stalls as
select
  tags.tag,
  tags.pid,
  coalesce(session.application_name, 'prepared transaction ' || prepared.gid) as application_name,
  coalesce(session.state, 'prepared') as state,
  extract(epoch from clock_timestamp() - coalesce(session.xact_start, prepared.prepared))::float8 as seconds,
  session.query,
  coalesce(session.usename, prepared.owner)::text as role,
  host(session.client_addr) as client_address
from refold.tags
left join pg_stat_activity session on session.pid = tags.pid
-- A prepared transaction has no session. Each transaction also locks its own id, and pg_prepared_xacts has its name under that id.
left join pg_locks own_id
  on tags.pid is null
  and own_id.locktype = 'transactionid'
  and own_id.virtualtransaction = tags.virtualtransaction
left join pg_prepared_xacts prepared on prepared.transaction = own_id.transactionid
order by tags.tag;


-- History can be cut: by a fail-over to a standby that lacked the last events, by the restore of an older backup, by a crash with
-- `synchronous_commit = off`. New events then take the positions of the lost ones. So a remembered position is kept with its anchor: the last
-- eight hexadecimal digits of the id of the last event at or below it. While the anchor is the same, everything up to the position is the same.
-- (The first digits would not do: ids that begin with the time share them for a minute.)

-- The anchor of a position at or below the horizon, or of an event's own position. Null at the beginning, and beyond the end of the log.
--
-- plpgsql, because it keeps its plan; an SQL function would be planned again in each statement. One setting is enough to avoid a plan that was
-- made for a small table, and each setting costs as much as the look-up.
create function refold.anchor(of_position bigint) returns text language plpgsql stable strict
  set enable_seqscan = off
as $$
begin
  if of_position = 0 or of_position > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then
    return null;
  end if;
  return coalesce(
    (
      select right(event.id::text, 8)
      from refold.events as event
      where event.position <= of_position
      order by event.position desc
      limit 1
    ),
    '00000000'
  );
end $$;

-- A checkpoint with its anchor, such as '1042.9f3c21ab', as units keep it beside their checkpoint.
create function refold.checkpoint_anchor(checkpoint bigint) returns text language sql stable as $$
  select checkpoint || '.' || refold.anchor(checkpoint)
$$;

-- Why nothing can continue from a checkpoint: 'beyond' if the log ends before it, 'other' if the log has other events up to it. Null if it can.
-- An anchor of another position than the checkpoint says nothing.
create function refold.lost_history(checkpoint bigint, anchor text) returns text language sql stable as $$
  select case
    when checkpoint > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then 'beyond'
    when split_part(anchor, '.', 1) = checkpoint::text -- '0.lost': nothing is known, whatever the log holds
      and split_part(anchor, '.', 2) is distinct from refold.anchor(checkpoint) then 'other'
  end
$$;

-- The time of the server's start in microseconds. Most cuts of history begin with a start, so a new one is a reason to check anchors.
create function refold.server_start() returns bigint language sql stable as $$
  select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint
$$;


-- The horizon with its anchor, the anchor of a position that the caller knows, and the server's start.
-- The anchors are read by later statements than the horizon, so their snapshots show everything up to it. A transaction that keeps one snapshot
-- for all its statements gets no anchors.
create function refold.read_head(known bigint, out horizon bigint, out anchor text, out known_anchor text, out server_start bigint)
language plpgsql volatile as $$
begin
  horizon := refold.horizon();
  server_start := refold.server_start();
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    anchor := refold.anchor(horizon);
    known_anchor := case when known = horizon then anchor else refold.anchor(known) end;
  end if;
end $$;

-- What refold.read_head returns, and the next events up to the horizon, in one call: a reader at the head asks for both all the time. There is
-- always a row; without events it has only the head. A transaction that keeps one snapshot for all its statements gets no events, and
-- `up_to` says so.
--
-- Volatile, so that the statement that reads the events has its own snapshot, later than the horizon. A stable function would read by the
-- snapshot of its caller.
create function refold.read_tail(after bigint, wanted text[], page_size int, known bigint default null)
returns table (
  horizon bigint, up_to bigint, "position" bigint, stream_position bigint, recorded_at timestamptz, id uuid, payload_version smallint,
  family text, stream_id text, type text, payload jsonb, metadata jsonb, anchor text, known_anchor text, server_start bigint
)
language plpgsql volatile
  set plan_cache_mode = force_generic_plan -- for a few events a new plan always looks cheaper than the kept one
  set enable_seqscan = off -- this and the next two as in refold.read_events
  set enable_bitmapscan = off
  set enable_sort = off
as $$
#variable_conflict use_column
declare
  new_snapshots boolean := current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
  found_any boolean := false;
begin
  horizon := refold.horizon();
  server_start := refold.server_start();
  up_to := after;
  if new_snapshots then
    -- The same as refold.anchor, without the cost of its setting.
    anchor := case when horizon > 0 then coalesce(
      (select right(event.id::text, 8) from refold.events as event where event.position <= horizon order by event.position desc limit 1),
      '00000000'
    ) end;
    known_anchor := case when known = horizon then anchor else refold.anchor(known) end;
  end if;
  if new_snapshots and horizon > after then
    up_to := horizon;
    return query
    select
      horizon, up_to, event.position, event.stream_position, event.recorded_at, event.id, event.payload_version,
      event.family, event.stream_id, event.type, event.payload, event.metadata, anchor, known_anchor, server_start
    from refold.events as event
    where event.position > after
      and event.position <= up_to
      and event.family || '.' || event.type = any (wanted)
    order by event.position
    limit page_size;
    found_any := found;
  end if;
  if not found_any then
    return next;
  end if;
end $$;

-- A page of the log in its order. With the anchor of `up_to`, a page of another history is refused instead of returned as complete.
--
-- A function because of its settings: when statistics lag behind a growing log, the planner would collect and sort all remaining events
-- instead of walking the key up to the limit.
create function refold.read_events(after bigint, up_to bigint, wanted text[], page_size int, anchor text default null)
returns setof refold.events language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set work_mem = '32MB' -- keeps an outgoing page in memory
as $$
begin
  if anchor is not null and anchor is distinct from refold.anchor(up_to) then
    raise exception 'The log does not hold what was known up to position %.', up_to using errcode = 'RF001';
  end if;
  return query
  select *
  from refold.events
  where position > after
    and position <= up_to
    and family || '.' || type = any (wanted)
  order by position
  limit page_size;
end $$;

-- What a reader at a position has not read yet: the number of wanted events, and the time of the first of them. Looks at most at `bound` positions.
-- If more remain, `exact` is false, `events` counts the wanted ones among those, and `oldest` is the time of the first wanted one or
-- else of the last one looked at. A function because of its settings, as refold.read_events.
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


-- For operators who search the log.

-- The last position whose events, and all before it, were recorded before a time; 0 if there is none. It bisects the log by its key, so it is as
-- exact as the server's clock: if the clock was set back, times do not rise with the positions everywhere.
create function refold.position_before(moment timestamptz) returns bigint language plpgsql stable
  set enable_seqscan = off
as $$
declare
  low bigint := 0;
  high bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  middle bigint;
  found_at bigint;
  found_time timestamptz;
begin
  while low < high loop
    middle := low + (high - low + 1) / 2;
    select position, recorded_at
    into found_at, found_time
    from refold.events
    where position between middle and high
    order by position
    limit 1;
    if found_at is null or found_time >= moment then
      high := middle - 1;
    else
      low := found_at;
    end if;
  end loop;
  return low;
end $$;

-- Positions of events with a correlation id, by the index of correlation ids: in a plan without sequential and plain index scans, that is what is
-- left. `+ 0` keeps the key out of it.
create function refold.correlated(correlation text, after bigint, up_to bigint, newest boolean, page_size int) returns setof bigint
language plpgsql stable
  set enable_seqscan = off
  set enable_indexscan = off
as $$
begin
  return query
  select position
  from refold.events
  where metadata ->> 'correlationId' = correlation
    and position + 0 > after
    and position + 0 <= up_to
  order by case when newest then -position else position end
  limit page_size;
end $$;
