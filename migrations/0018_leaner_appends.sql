-- The functions that every append calls, with fewer statements inside. `perform` runs a statement, with an executor of its own; an
-- assignment of an expression without a table is only evaluated, a tenth of the time. Both take a new snapshot.

-- As in migration 0012.
create or replace function refold.tag_writer() returns trigger language plpgsql as $$
declare
  last bigint;
  done text;
begin
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

-- As in migration 0012. Where no version has ever become live, there is none to be put out: the sequence is drawn from behind the closed
-- gate, and seen by everybody from then on. Without the right to read it, it seems to have no value, or
-- before PostgreSQL 17 can't be asked.
create or replace function refold.pass_inline(of_families text[]) returns void language plpgsql volatile as $$
declare
  entry record;
  done text;
begin
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  if has_sequence_privilege('refold.inline_lives'::regclass, 'usage, select') then
    if pg_sequence_last_value('refold.inline_lives') is null then
      return;
    end if;
  end if;
  -- Its snapshot may be older than what is live.
  if current_setting('transaction_isolation') <> 'read committed' and pg_sequence_last_value('refold.inline_lives') is not null then
    perform refold.refuse_isolation();
  end if;
  for entry in
    select name, version
    from refold.inline_versions
    where status = 'live' and (of_families is null or families && of_families)
    order by lock_key
  loop
    perform refold.leave_inline(entry.name, entry.version, true);
  end loop;
end $$;

-- As in migration 0012: whether a version is still live is read once its lock is had. It can't have become live in between, since the gate is
-- shared. Joins with the arrays would be shorter, and planned anew each time.
create or replace function refold.enter_inline(
  of_families text[], names text[], versions int[], whole_keys bigint[], whole boolean[], row_owners int[], row_keys bigint[],
  lock_timeout_ms int
) returns text[] language plpgsql volatile as $$
declare
  tables text[] := array_fill(null::text, array[cardinality(names)]);
  entry record;
  number int;
  numbers int[] := '{1}';
  some_live boolean := false;
  done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform refold.refuse_isolation();
  end if;
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true);
  end if;
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  for entry in
    select name, version, lock_key, families && of_families as concerned
    from refold.inline_versions
    where status = 'live'
    order by lock_key
  loop
    number := array_position(names, entry.name);
    while versions[number] <> entry.version loop
      number := array_position(names, entry.name, number + 1);
    end loop;
    if number is null and entry.concerned then
      perform refold.leave_inline(entry.name, entry.version, true);
    elsif number <= cardinality(whole) then
      done := pg_advisory_xact_lock_shared(entry.lock_key);
      tables[number] := (
        select table_name
        from refold.projections
        where name = entry.name
          and version = entry.version
          and exists (
            select from refold.inline_versions where name = entry.name and version = entry.version and status = 'live'
          )
      );
      some_live := some_live or tables[number] is not null;
    end if;
  end loop;
  if some_live then
    if cardinality(whole) > 1 then
      numbers := array(select of_rows.number from unnest(whole_keys) with ordinality of_rows (key, number) order by key);
    end if;
    foreach number in array numbers loop
      if tables[number] is null then
        continue;
      elsif whole[number] then
        done := pg_advisory_xact_lock(whole_keys[number]);
      else
        done := pg_advisory_xact_lock_shared(whole_keys[number]);
      end if;
    end loop;
    for touched in 1 .. cardinality(row_keys) loop
      if tables[row_owners[touched]] is not null then
        done := pg_advisory_xact_lock(row_keys[touched]);
      end if;
    end loop;
  end if;
  done := set_config('refold.entered', of_families::text, true);
  return tables;
end $$;

-- As in migration 0012.
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
) language plpgsql volatile as $$
declare
  versions  bigint[]; -- of the streams, as if all appends were written
  all_fit   boolean;
  used_keys boolean := false;
  done      text;
begin
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true); -- of this transaction, which is this statement
  end if;
  -- Who can fold has entered with the families of this batch just before; everybody else passes.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    done := refold.pass_inline(families);
  else
    if not families <@ current_setting('refold.entered')::text[] then
      done := refold.pass_inline(families);
    end if;
    done := set_config('refold.entered', '', true);
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
  done := set_config('refold.appending', 'yes', true); -- the trigger has nothing to look after
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
  done := set_config('refold.appending', '', true);

  if positions is not null then
    done := pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $$;
