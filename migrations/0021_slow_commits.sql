-- Appends wait for the commits of other transactions as long as these take, not as short as for a locked stream.
--
-- Needs: 0020_unique_rules
-- Older processes: can run beside it

-- As in migration 0020; 0006 describes the arguments.
create or replace function refold.append(
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
  unchecked text[]; -- types that can't be appended now, because nothing checks their unique values
  done      text;
begin
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true); -- for this transaction, which is this statement
  end if;
  -- A caller that can fold has called refold.enter_inline with these families just before. All others pass.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    unchecked := refold.pass_inline(families);
  else
    unchecked := current_setting('refold.unchecked')::text[];
    if not families <@ current_setting('refold.entered')::text[] then
      unchecked := unchecked || refold.pass_inline(families);
    end if;
    folding := current_setting('refold.folding');
    done := set_config('refold.entered', '', true);
  end if;
  if unchecked <> '{}' then
    unchecked := array(
      select distinct event.family || '.' || event.type
      from json_to_recordset(new_events) as event (family text, type text)
      where event.family || '.' || event.type = any (unchecked)
    );
    if unchecked <> '{}' then
      perform refold.refuse_unchecked(unchecked);
    end if;
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
  -- The commit waits for other commits that notify, and no other append is delayed by that. The short limit of a joined append would roll back here
  -- wherever commits are slow, and its positions would be lost.
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', greatest(lock_timeout_ms, 5000)::text, true);
  end if;
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
