-- History may be cut behind a process's back: a fail-over to a standby that lacked the last events, a restore of an older backup, a crash with
-- `synchronous_commit = off`. New events then take the positions of those that are gone. So a position that somebody remembers is anchored:
-- kept with the last eight hexadecimal digits of the id of the last event at or below it. While that event stands there, everything up to
-- the position is as it was. (The first digits would not do: those of an id that begins with the time are the same for a minute.)

-- The anchor of a position at or below the horizon, or of an event's own. Null at the beginning, and beyond the end of the log,
-- where nothing is known yet.
-- plpgsql keeps its plan, an SQL function would be planned anew in each statement. The plan must not be one that was made for a small table;
-- one setting does for that, and each costs as much as the look-up.
create function refold.anchor(of_position bigint) returns text
language plpgsql stable strict
set enable_seqscan = off as $$
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

-- When the server was started, in microseconds: most cuts begin with a start, so another one is a sign that what was known may be gone.
create function refold.server_start() returns bigint language sql stable as $$
  select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint
$$;

-- How far the log is complete with its anchor, the anchor of a position that the caller knows from before, and when the server was started.
-- The anchors are read by later statements than the horizon, so that their snapshots show all that is at or below it; where the transaction
-- keeps one snapshot, there are none.
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

-- As before, and what refold.read_head gives besides.
drop function refold.read_tail(bigint, text[], int);
create function refold.read_tail(after bigint, wanted text[], page_size int, known bigint default null)
returns table (
  horizon bigint, up_to bigint, "position" bigint, stream_position bigint, recorded_at timestamptz, id uuid, payload_version smallint,
  family text, stream_id text, type text, payload jsonb, metadata jsonb, anchor text, known_anchor text, server_start bigint
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan -- for a few events a plan made anew always looks cheaper than the one that is kept
set enable_seqscan = off -- the others as in refold.read_events
set enable_bitmapscan = off
set enable_sort = off as $$
#variable_conflict use_column
declare
  new_snapshots boolean := current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
  found_any boolean := false;
begin
  horizon := refold.horizon();
  server_start := refold.server_start();
  up_to := after;
  if new_snapshots then
    anchor := case when horizon > 0 then coalesce(
      (select right(event.id::text, 8) from refold.events as event where event.position <= horizon order by event.position desc limit 1),
      '00000000'
    ) end; -- as refold.anchor, without settings of its own
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

-- As before. With the anchor of `up_to`, where the caller has it: a page of another history is refused, not given as if it were complete.
drop function refold.read_events(bigint, bigint, text[], int);
create function refold.read_events(after bigint, up_to bigint, wanted text[], page_size int, anchor text default null)
returns setof refold.events language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set work_mem = '32MB' -- a page on its way out stays in memory
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

-- As before, and the anchors of where the version is and of where the caller was: of a live inline version that is the horizon, which the
-- caller looked up before (`complete`).
drop function refold.recent_changes(text, int, bigint[], int);
create function refold.recent_changes(
  of_name text, of_version int, seen bigint[], most int, known bigint default null, complete bigint default null
)
returns table (
  checkpoints json, read_at float8, live boolean, forgotten bigint, changed_at bigint, upserted jsonb, deleted jsonb,
  anchor text, known_anchor text, server_start bigint
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off -- a plan that is kept may have been made while the tables were small
set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  with reached as (
    select
      json_agg(refold.reached(processor.name, processor.version, processor.checkpoint)::text order by processor.partition) as checkpoints,
      min(processor.checkpoint) as least,
      exists (
        select from refold.inline_versions as inline
        where inline.name = of_name and inline.version = of_version and inline.status = 'live'
      ) as live,
      (
        select floor.position
        from refold.change_floors as floor
        where floor.name = of_name and floor.version = of_version
      ) as forgotten
    from refold.processors as processor
    where processor.name = of_name and processor.version = of_version
  ), anchored as (
    select
      reached.*,
      refold.anchor(case when reached.live then complete else reached.least end) as anchor,
      refold.anchor(known) as known_anchor
    from reached
  )
  select
    anchored.checkpoints,
    (extract(epoch from now()) * 1000)::float8,
    anchored.live,
    anchored.forgotten,
    change.checkpoint,
    change.upserted,
    change.deleted,
    anchored.anchor,
    anchored.known_anchor,
    refold.server_start()
  from anchored
  left join lateral (
    select of_partition.*
    from unnest(seen) with ordinality as seen_of (checkpoint, number)
    cross join lateral (
      select change.checkpoint, change.upserted, change.deleted
      from refold.changes as change
      where change.name = of_name
        and change.version = of_version
        and change.partition = seen_of.number - 1
        and change.checkpoint > seen_of.checkpoint
      order by change.checkpoint
      limit most
    ) as of_partition
  ) as change on true;
end $$;

-- A checkpoint with its anchor, as '1042.9f3c21ab': read tables that were restored apart from the log, or a log from an older backup, show when
-- the unit is claimed. One that is of another position than the checkpoint says nothing.
alter table refold.processors add column anchor text;
alter table refold.rebuilds add column anchor text;
alter table refold.reactors add column anchor text;
create function refold.checkpoint_anchor(checkpoint bigint) returns text
language sql stable as $$
  select checkpoint || '.' || refold.anchor(checkpoint)
$$;

-- Why nothing can go on from a checkpoint: the log ends before it, or has other events up to there. Null where all is well.
create function refold.lost_history(checkpoint bigint, anchor text) returns text
language sql stable as $$
  select case
    when checkpoint > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then 'beyond'
    when split_part(anchor, '.', 1) = checkpoint::text -- '0.lost': nothing is known, whatever the log holds
      and split_part(anchor, '.', 2) is distinct from refold.anchor(checkpoint) then 'other'
  end
$$;
