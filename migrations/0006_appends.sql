-- Appends. One call writes a batch of independent appends.
--
-- Needs: 0001_event_log, 0002_horizon, 0005_inline_appends
-- Older processes: can run beside it
--
-- Functions that every append calls assign results to `done` instead of using `perform`: `perform` runs a statement with an executor of its own, an
-- assignment without a table is only evaluated, in a tenth of the time.

-- Whether a stream has the version that an append expects: n >= 1 exactly n, 0 no stream, -1 any, -2 an existing stream. One SQL expression, which
-- PostgreSQL writes into each statement that calls it.
create function refold.version_fits(expected bigint, actual bigint) returns boolean language sql immutable as $$
  select expected = actual or expected = -1 or (expected = -2 and actual > 0)
$$;

-- An append is atomic over its streams. A refused append does not affect the others of the batch. The number of statements inside does not grow
-- with the batch.
--
-- In:  families, stream_ids, stream_sizes: the distinct streams of the batch with the number of events for each, in the order in which they are
--      locked. All callers use one order, or they deadlock.
--      keys: the idempotency keys of the appends; null if none has one. inputs: the fingerprints of their requests, kept with the key.
--      part_*: the parts in the order of the appends. A part is one stream of one append: which append, which stream, the expected version (as
--      refold.version_fits reads it), the number of events, and the number of events of earlier parts for the same stream.
--      new_events: all events in the order of the parts.
--      lock_timeout_ms: how long to wait for locks.
-- Out: starts: for each part, the version of its stream before it; null if its append was not written.
--      positions: of the written events, in order.
--      verdicts: for each append 0 if written, -1 if its key was used before, else the number of the refused part; null if all were written.
--      actuals: the version found by a refused part. earlier: the stored results of used keys.
create function refold.append(
  families text[],
  stream_ids text[],
  stream_sizes int[],
  keys text[],
  part_appends int[],
  part_streams int[],
  part_expected bigint[],
  part_sizes int[],
  part_offsets int[],
  new_events json,
  inputs text[] default null,
  lock_timeout_ms int default null,
  out starts bigint[],
  out positions bigint[],
  out recorded timestamptz,
  out verdicts int[],
  out actuals bigint[],
  out earlier jsonb
) language plpgsql volatile
  -- If a session has switched off what the planner needs here (`enable_sort`, …), the plan gets an enormous cost, and a server with JIT would
  -- compile it each time: a hundred times the append. The setting costs at most 3 % of the function.
  set jit = off
as $$
declare
  versions  bigint[]; -- of the streams, as if all appends were written
  all_fit   boolean;
  used_keys boolean := false;
  folding   text := ''; -- the number of announced leaves when it entered; empty if it folds nothing
  done      text;
begin
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true); -- for this transaction, which is this statement
  end if;
  -- A caller that can fold has called refold.enter_inline with these families just before. All others pass.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    done := refold.pass_inline(families);
  else
    if not families <@ current_setting('refold.entered')::text[] then
      done := refold.pass_inline(families);
    end if;
    folding := current_setting('refold.folding');
    done := set_config('refold.entered', '', true);
  end if;
  if keys is not null then
    earlier := refold.claim_append_keys(keys);
    used_keys := earlier <> '{}' or (select count(key) > count(distinct key) from unnest(keys) key);
  end if;

  -- Locks every stream, and creates missing ones. Assumes the usual case, that every version fits, and corrects it below if not. A single part
  -- has a simpler statement.
  if cardinality(part_streams) = 1 then
    insert into refold.streams (family, stream_id, version)
    values (families[1], stream_ids[1], stream_sizes[1])
    on conflict (family, stream_id) do update set version = streams.version + excluded.version
    returning array[version], array[version - stream_sizes[1]] into versions, starts;

    all_fit := refold.version_fits(part_expected[1], starts[1]);
  else
    with locked as (
      insert into refold.streams (family, stream_id, version)
      select family, stream_id, size
      from unnest(families, stream_ids, stream_sizes) wanted (family, stream_id, size)
      on conflict (family, stream_id) do update set version = streams.version + excluded.version
      returning version
    )
    select array_agg(version) into versions from locked;

    select array_agg(start), bool_and(refold.version_fits(expected, start))
    into starts, all_fit
    from (
      select expected, versions[stream] - stream_sizes[stream] + part_offset as start
      from unnest(part_streams, part_expected, part_offsets) part (stream, expected, part_offset)
    ) part;
  end if;

  -- A refused version, a key that was used before or twice, or a stream that was created although it is only checked.
  if not all_fit or used_keys or 0 = any (versions) then
    select decision.* into starts, verdicts, actuals
    from refold.decide_appends(
      (select array_agg(version - size) from unnest(versions, stream_sizes) stream (version, size)),
      keys, earlier, part_appends, part_streams, part_expected, part_sizes
    ) decision;
    perform refold.take_back(families, stream_ids, stream_sizes, part_streams, part_sizes, starts);
  end if;

  done := set_config('refold.appending', 'yes', true); -- tells the tag trigger that inline versions are handled
  -- The rows come in the order of the array, and positions are drawn in the order of the rows. Their time is read once, when the first row is
  -- computed, so after the tag was taken: if no tag is left from before a time, no event can still appear that was recorded before that time.
  with inserted as (
    insert into refold.events
      (stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata)
    select
      starts[event.part] + event.number, (select clock_timestamp()), event.id, event.version,
      event.family, event.stream, event.type, event.payload, event.metadata
    from json_to_recordset(new_events) as event (
      part int, number int, id uuid, version smallint,
      family text, stream text, type text, payload jsonb, metadata jsonb
    )
    where starts[event.part] is not null
    returning position, recorded_at
  )
  select array_agg(position), coalesce(min(recorded_at), clock_timestamp()) into positions, recorded from inserted;
  done := set_config('refold.appending', '', true);
  -- An inline version was left between entering and drawing the positions: the caller enters again.
  if folding <> '' and folding::bigint <> pg_sequence_last_value('refold.inline_leaves') then
    perform refold.refuse_left();
  end if;

  if positions is not null then
    done := pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $$;

-- Claims the free keys, and returns the results of the used ones. Waits for a concurrent append with one of the keys: its inserted row is the lock.
-- Keys are inserted in sorted order, so two batches never wait for each other.
create function refold.claim_append_keys(keys text[]) returns jsonb language plpgsql volatile
  set enable_seqscan = off
as $$
declare
  results jsonb;
begin
  loop
    insert into refold.append_keys (key)
    select distinct key
    from unnest(keys) key
    where key is not null
    order by key
    on conflict do nothing;

    select coalesce(jsonb_object_agg(key, result) filter (where result is not null), '{}')
    into results
    from refold.append_keys
    where key = any (keys)
    having count(*) = (select count(distinct key) from unnest(keys) key);
    exit when found; -- otherwise a key was deleted in between
  end loop;
  return results;
end $$;

-- Decides the appends one after the other. Each sees the effects of those before it in the batch.
create function refold.decide_appends(
  versions bigint[], keys text[], earlier jsonb,
  part_appends int[], part_streams int[], part_expected bigint[], part_sizes int[],
  out starts bigint[], out verdicts int[], out actuals bigint[]
) language plpgsql immutable as $$
declare
  appends   constant int := part_appends[cardinality(part_appends)];
  used_keys text[] := '{}';
  part      int := 1;
  first     int;
  verdict   int;
  actual    bigint;
begin
  starts := array_fill(null::bigint, array[cardinality(part_appends)]);
  verdicts := array_fill(0, array[appends]);
  actuals := array_fill(null::bigint, array[appends]);
  for append in 1 .. appends loop
    first := part;
    verdict := 0;
    if keys[append] is not null and (earlier ? keys[append] or keys[append] = any (used_keys)) then
      verdict := -1;
    end if;
    while part_appends[part] = append loop
      actual := versions[part_streams[part]];
      if verdict = 0 and not refold.version_fits(part_expected[part], actual) then
        verdict := part;
        actuals[append] := actual;
      end if;
      part := part + 1;
    end loop;
    if verdict = 0 then
      if keys[append] is not null then
        used_keys := used_keys || keys[append];
      end if;
      for p in first .. part - 1 loop
        starts[p] := versions[part_streams[p]];
        versions[part_streams[p]] := starts[p] + part_sizes[p];
      end loop;
    end if;
    verdicts[append] := verdict;
  end loop;
end $$;

-- Subtracts refused parts from the versions of their streams, and deletes streams that were created only for them.
create function refold.take_back(
  families text[], stream_ids text[], stream_sizes int[], part_streams int[], part_sizes int[], starts bigint[]
) returns void language plpgsql volatile
  -- Plans are kept for long, and may be made while a table is empty. These settings keep them to the indexes.
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  update refold.streams
  set version = streams.version - refused.size
  from (
    select part.stream, sum(part.size) as size
    from unnest(part_streams, part_sizes, starts) part (stream, size, start)
    where part.start is null
    group by part.stream
  ) refused
  where streams.family = families[refused.stream]
    and streams.stream_id = stream_ids[refused.stream];

  delete from refold.streams
  using unnest(families, stream_ids) wanted (family, stream_id)
  where streams.family = wanted.family
    and streams.stream_id = wanted.stream_id
    and streams.version = 0;
end $$;

-- Stores the results of written appends under their keys, and releases the keys of the others. A step's key has a 'step' in its result, as
-- 'step:command:fingerprint of the input'. It is no 'input', because keys with an 'input' belong to clients and are deleted sooner.
create function refold.store_append_results(
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
