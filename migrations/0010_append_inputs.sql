-- An idempotency key remembers a fingerprint of what was asked for under it (`inputs`), so that the same key with another request is
-- noticed; and appends wait for locks no longer than they are told (`lock_timeout_ms`).
drop function refold.append(text[], text[], int[], text[], int[], int[], bigint[], int[], int[], json);
drop function refold.store_append_results(text[], text[], text[], int[], int[], int[], bigint[], bigint[], timestamptz);

-- As before (migration 0001), and: inputs, one per append, are kept with the key as 'input'.
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
) language plpgsql volatile as $$
declare
  versions  bigint[]; -- of the streams, as if all appends were written
  all_fit   boolean;
  used_keys boolean := false;
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', lock_timeout_ms::text, true); -- of this transaction, which is this statement
  end if;
  if keys is not null then
    earlier := refold.claim_append_keys(keys);
    used_keys := earlier <> '{}' or (select count(key) > count(distinct key) from unnest(keys) key);
  end if;

  -- Locks every stream, and makes the missing ones. That no version is in the way is the usual case, so it is taken as
  -- given here, and put right below where it is not. A single part has its own, leaner statement.
  if cardinality(part_streams) = 1 then
    insert into refold.streams (family, stream_id, version)
    values (families[1], stream_ids[1], stream_sizes[1])
    on conflict (family, stream_id) do update set version = streams.version + excluded.version
    returning array[version], array[version - stream_sizes[1]] into versions, starts;

    all_fit := part_expected[1] = starts[1] or part_expected[1] = -1 or (part_expected[1] = -2 and starts[1] > 0);
  else
    with locked as (
      insert into refold.streams (family, stream_id, version)
      select family, stream_id, size
      from unnest(families, stream_ids, stream_sizes) wanted (family, stream_id, size)
      on conflict (family, stream_id) do update set version = streams.version + excluded.version
      returning version
    )
    select array_agg(version) into versions from locked;

    select
      array_agg(start),
      bool_and(expected = start or expected = -1 or (expected = -2 and start > 0))
    into starts, all_fit
    from (
      select expected, versions[stream] - stream_sizes[stream] + part_offset as start
      from unnest(part_streams, part_expected, part_offsets) part (stream, expected, part_offset)
    ) part;
  end if;

  -- A refused version, a key used before or twice, or a stream that was made although it is only checked.
  if not all_fit or used_keys or 0 = any (versions) then
    select decision.* into starts, verdicts, actuals
    from refold.decide_appends(
      (select array_agg(version - size) from unnest(versions, stream_sizes) stream (version, size)),
      keys, earlier, part_appends, part_streams, part_expected, part_sizes
    ) decision;
    perform refold.take_back(families, stream_ids, stream_sizes, part_streams, part_sizes, starts);
  end if;

  recorded := clock_timestamp();
  -- The rows come in the order of the array, and positions are drawn in the order of the rows.
  with inserted as (
    insert into refold.events
      (stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata)
    select
      starts[event.part] + event.number, recorded, event.id, event.version,
      event.family, event.stream, event.type, event.payload, event.metadata
    from json_to_recordset(new_events) as event (
      part int, number int, id uuid, version smallint,
      family text, stream text, type text, payload jsonb, metadata jsonb
    )
    where starts[event.part] is not null
    returning position
  )
  select array_agg(position) into positions from inserted;

  if positions is not null then
    perform pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $$;

-- Keeps the results of written appends under their keys, and frees the keys of the others.
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
  ) || case when written.input is null then '{}' else jsonb_build_object('input', written.input) end
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

-- Keys with an input are those of clients that may send a request again, and are forgotten some day; all others are kept with the log.
create index append_keys_of_clients on refold.append_keys (recorded_at) where result ? 'input';
