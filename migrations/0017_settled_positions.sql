-- A read store in another database notices every event that the log has lost.
--
-- Needs: 0002_horizon, 0003_registry
-- Older processes: can run beside it

-- The anchor of a checkpoint shows that the last event up to it is there. Others may be gone all the same: of two appends, the one with the lower
-- position may commit later. If the log fails over to a standby that has only the first of the two commits, the anchor still matches. Rows in
-- the database of the log are cut in the same place. Rows in another database are not, and would keep an event that no log has.
--
-- So a checkpoint in another database also counts events. Its text has eight parts, such as '1042.9f3c21ab.1031.9.1040.2.1043.1795651200000000':
--
-- 1. the checkpoint
-- 2. its anchor
-- 3. `settled`: every event up to here had committed before the event of the anchor drew its position. So all of them are there if that one is
-- 4. the number of events after `settled`, up to the checkpoint
-- 5. `mark`: the position that will be settled next
-- 6. the number of events after `mark`, up to the checkpoint
-- 7. `ceiling`: the highest position that was drawn when the mark was set. All events up to the mark had committed by then, so an event beyond the
--    ceiling settles them. While nothing is drawn, the mark follows the checkpoint
-- 8. when the log's server was started (refold.server_start)

-- The text of the checkpoint that follows `from_checkpoint`, whose text was `previous`. Null if the log ends before it. Without the previous text,
-- as after an earlier version of Refold, everything up to `from_checkpoint` counts as settled, though nothing proves it. Call it only for
-- positions at or below the horizon.
create function refold.next_checkpoint_anchor(previous text, from_checkpoint bigint, to_checkpoint bigint)
returns text language plpgsql volatile
  set enable_seqscan = off -- as in refold.anchor
as $$
declare
  parts text[] := string_to_array(previous, '.');
  continues boolean := coalesce(cardinality(parts) = 8 and parts[1] = from_checkpoint::text, false);
  settled bigint := case when continues then parts[3]::bigint else from_checkpoint end;
  counted bigint := case when continues then parts[4]::bigint else 0 end;
  mark bigint := case when continues then parts[5]::bigint end;
  since_mark bigint := case when continues then parts[6]::bigint end;
  ceiling bigint := case when continues then parts[7]::bigint end;
  drawn bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  added bigint;
  last_event bigint;
  anchor text;
begin
  if to_checkpoint = 0 or to_checkpoint > drawn then
    return null;
  end if;
  added := (select count(*) from refold.events as event where event.position > from_checkpoint and event.position <= to_checkpoint);
  -- The same as refold.anchor, without the cost of its setting.
  select event.position, right(event.id::text, 8)
  into last_event, anchor
  from refold.events as event
  where event.position <= to_checkpoint
  order by event.position desc
  limit 1;
  counted := counted + added;
  since_mark := since_mark + added;
  if last_event > ceiling then
    settled := mark;
    counted := since_mark;
    mark := null;
  end if;
  if mark is null or drawn = ceiling then
    mark := to_checkpoint;
    since_mark := 0;
    ceiling := drawn;
  end if;
  return concat_ws('.', to_checkpoint, coalesce(anchor, '00000000'), settled, counted, mark, since_mark, ceiling, refold.server_start());
end $$;

-- Why nothing can continue from a checkpoint: 'beyond' if the log ends before it, 'other' if the log has other events up to it. Null if it can.
-- The text of another position than the checkpoint says nothing. Events are counted only after another start of the server, which comes with
-- every loss but one: that of a backend that crashes under `synchronous_commit = off`.
create or replace function refold.lost_history(checkpoint bigint, anchor text) returns text language sql stable as $$
  select case
    when checkpoint > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then 'beyond'
    when split_part(anchor, '.', 1) is distinct from checkpoint::text then null
    when split_part(anchor, '.', 2) is distinct from refold.anchor(checkpoint) then 'other' -- '0.lost': nothing is known, whatever the log holds
    when split_part(anchor, '.', 8) in ('', refold.server_start()::text) then null
    when nullif(split_part(anchor, '.', 4), '')::bigint is distinct from (
      select count(*)
      from refold.events as event
      where event.position > nullif(split_part(anchor, '.', 3), '')::bigint and event.position <= checkpoint
    ) then 'other'
  end
$$;

-- The text of a checkpoint of which nothing is lost, as of the present start of the server: its events need not be counted again.
create function refold.checked_anchor(anchor text) returns text language sql stable as $$
  select regexp_replace(anchor, '^(([^.]*\.){7}).*$', '\1' || refold.server_start())
$$;

alter table refold.table_snapshots add column anchor text;

comment on column refold.table_snapshots.anchor is 'The checkpoint with its anchor, as in processors.';
