-- Reactors: steps remember the command and the input that they ran with, and attempts to handle an event are kept.
--
-- Needs: 0006_appends, 0009_reactors
-- Older processes: can run beside it
--
-- Steps that have names are stored under other keys than by older processes. An older process that freezes in the middle of such a step, and goes on
-- after a newer one has taken over its reactor, can run the step a second time. Unnamed steps keep their keys.

-- The attempts of each reactor to handle an event that have not succeeded yet. Written before a handler runs, so the next owner knows an event that
-- ends its process. Not in refold.reactors: a handler would wait for the row while the checkpoint is written.
create table refold.reactor_attempts (
  reactor text collate "C" primary key references refold.reactors on delete cascade,
  -- the fence: of the owner that has written it
  epoch bigint not null,
  -- the process that has written it
  process text not null,
  -- by position: {"1042": {"failed": 2, "lost": 1, "running": true}}
  events jsonb not null
) with (fillfactor = 50); -- updated by each attempt

-- Stores the results of written appends under their keys, and releases the keys of the others. A step's key has a 'step' in its result, as
-- 'step:command:fingerprint of the input'. It is no 'input', because keys with an 'input' belong to clients and are deleted sooner.
create or replace function refold.store_append_results(
  families text[], stream_ids text[], keys text[], part_appends int[], part_streams int[], part_sizes int[],
  starts bigint[], positions bigint[], recorded timestamptz, inputs text[]
) returns void language plpgsql volatile
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  update refold.append_keys
  set result = jsonb_build_object(
    'recordedAt', recorded,
    'streams', written.streams,
    'positions', to_jsonb(positions[written.first : written.last])
  ) || case
    when written.input is null then '{}'
    when written.input like 'step:%' and written.key like '%:%/________-____-____-____-____________/%'
      then jsonb_build_object('step', written.input)
    else jsonb_build_object('input', written.input)
  end
  from (
    select
      keys[append] as key,
      inputs[append] as input,
      min(last - size) + 1 as first,
      max(last) as last,
      jsonb_agg(jsonb_build_array(families[stream], stream_ids[stream], start + size) order by number) as streams
    from (
      select *, sum(size) over (order by number) as last
      from unnest(part_appends, part_streams, part_sizes, starts)
        with ordinality part (append, stream, size, start, number)
      where start is not null
    ) part
    group by append
  ) written
  where append_keys.key = written.key;

  delete from refold.append_keys where key = any (keys) and result is null;
end $$;
