-- How far the log is complete, and the events up to there, in one call: at the head a reader wants both, again and again, and each question
-- wakes up two processes. The horizon is looked up first, and the events are read by a later statement, whose snapshot is taken then: it shows
-- all that is at or below the horizon. Where the transaction keeps one snapshot for all of its statements, no event is read, and `up_to` says so.
-- There is always a row: one without an event, where there is none. Volatile: a stable function reads by the snapshot of its caller.
create function refold.read_tail(after bigint, wanted text[], page_size int)
returns table (
  horizon bigint, up_to bigint, "position" bigint, stream_position bigint, recorded_at timestamptz, id uuid, payload_version smallint,
  family text, stream_id text, type text, payload jsonb, metadata jsonb
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan -- for a few events a plan made anew always looks cheaper than the one that is kept
set enable_seqscan = off -- the others as in refold.read_events
set enable_bitmapscan = off
set enable_sort = off as $$
#variable_conflict use_column
begin
  horizon := refold.horizon();
  up_to := after;
  if horizon > after and current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    up_to := horizon;
    return query
    select
      horizon, up_to, event.position, event.stream_position, event.recorded_at, event.id, event.payload_version,
      event.family, event.stream_id, event.type, event.payload, event.metadata
    from refold.events as event
    where event.position > after
      and event.position <= up_to
      and event.family || '.' || event.type = any (wanted)
    order by event.position
    limit page_size;
  end if;
  if not found then
    return next;
  end if;
end $$;
