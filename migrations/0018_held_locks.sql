-- Which locks of an append other transactions hold. For a process whose joined appends have waited in vain: the appends that need none of these
-- continue, the others wait apart.
--
-- Needs: 0001_event_log
-- Older processes: can run beside it

-- locks: [{ stream, family } | { key } (of an append) | { table, schema } | { advisory, alone }]. Returns the numbers, from 1, of those that can't
-- be taken within `wait_ms` each. Takes each as an append does, because nothing else shows a stream or key that another transaction has created
-- and not yet committed. It gives each back before it takes the next one, so others never wait for more than one of them, and no deadlock is
-- possible.
create function refold.held_among(locks jsonb, wait_ms int) returns int[] language plpgsql volatile as $$
declare
  held int[] := '{}';
  lock jsonb;
  number int;
begin
  perform set_config('lock_timeout', wait_ms::text, true);
  for lock, number in select value, ordinality from jsonb_array_elements(locks) with ordinality loop
    begin
      if lock ? 'stream' then
        insert into refold.streams (family, stream_id, version)
        values (lock ->> 'family', lock ->> 'stream', 0)
        on conflict (family, stream_id) do update set version = 0 where false; -- locks the row and leaves it as it is
      elsif lock ? 'key' then
        insert into refold.append_keys (key) values (lock ->> 'key') on conflict do nothing;
      elsif lock ? 'table' then
        execute format('lock table %I.%I in row exclusive mode', lock ->> 'schema', lock ->> 'table');
      elsif (lock -> 'alone')::boolean then
        perform pg_advisory_xact_lock((lock ->> 'advisory')::bigint);
      else
        perform pg_advisory_xact_lock_shared((lock ->> 'advisory')::bigint);
      end if;
      raise exception using errcode = 'RF002'; -- rolls back to the beginning of this block
    exception
      when sqlstate 'RF002' then null;
      when lock_not_available or deadlock_detected then held := held || number;
    end;
  end loop;
  return held;
end $$;
