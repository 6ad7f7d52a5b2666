-- An append is refused if the sequence stands below the log: its positions would be below existing ones, which readers have passed.
--
-- Needs: 0020_unique_rules
-- Older processes: can run beside it

-- With the owner's privileges: a writer needs no right to read events.
create function refold.last_position() returns bigint language plpgsql security definer set search_path = pg_catalog as $$
begin
  return (select event.position from refold.events as event order by event.position desc limit 1);
end $$;

-- As in migration 0020.
create or replace function refold.tag_writer() returns trigger language plpgsql as $$
declare
  known bigint;
  last bigint;
  done text; -- assigned instead of `perform`, which runs a statement and takes ten times as long
begin
  -- An insert without refold.append: nobody knows the families of its rows yet, so live inline versions of all families stop folding. What may
  -- not be among the rows is checked by refold.check_insert when they are there.
  if coalesce(current_setting('refold.appending', true), '') = '' then
    done := set_config('refold.unchecked', refold.pass_inline(null)::text, true);
    done := set_config('refold.inserting_after', coalesce(pg_sequence_last_value('refold.events_position_seq'), 0)::text, true);
  end if;
  if coalesce(current_setting('refold.tag', true), '') = '' then
    -- Read before the sequence: other writers draw from it meanwhile.
    known := refold.last_position();
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    if known > last then
      raise exception 'the sequence of refold.events stands at %, and the log has events up to %', last, known using errcode = 'RF004';
    end if;
    done := pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    done := set_config('refold.tag', last::text, true);
  end if;
  return null;
end $$;
