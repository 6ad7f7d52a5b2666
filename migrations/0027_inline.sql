-- How a version leaves the appends, without a lock that anybody waits for.
--
-- Whoever leaves announces it first: it shares the version's *leave* lock, draws from `inline_leaves`, and writes a departure. The lock and the
-- sequence are seen at once, the departure when it commits. An append that folds looks at the sequence as it enters and again when its positions
-- are drawn. Where it moved meanwhile, the append begins again. So whatever was folded has a lower position than whatever was left out.
-- docs/architecture.md has the whole argument.
create table refold.inline_departures (
  name text collate "C" not null,
  version integer not null,
  -- What was folded is at or below it, what was left out is above it.
  position bigint not null,
  -- whether a writer that can't fold has announced it
  passing boolean not null
);
create index inline_departures_by_version on refold.inline_departures (name, version);

-- How many leaves were announced. A sequence, because it is seen at once and by everybody. It always has a value: none would mean that the user may
-- not read it.
create sequence refold.inline_leaves;
select nextval('refold.inline_leaves');

-- For writers that may not draw from the sequence.
create function refold.count_leave() returns bigint language sql volatile security definer set search_path = pg_catalog as $$
  select nextval('refold.inline_leaves')
$$;

-- The leave lock of a version, beside its lock. 21074 (0x5252); src/store/lock-keys.ts says the same.
create function refold.inline_leave_key(lock_key bigint) returns bigint language sql immutable as $$
  select (21074::bigint << 48) | (lock_key & ((1::bigint << 48) - 1))
$$;

create function refold.refuse_left() returns void language plpgsql as $$
begin
  raise exception 'An inline version has left the appends since this one entered it.'
    using errcode = 'serialization_failure', hint = 'Append again.';
end $$;

-- Whether any version has ever become live; for writers that may not read the sequence.
create function refold.was_ever_live() returns boolean language sql volatile security definer set search_path = pg_catalog as $$
  select pg_sequence_last_value('refold.inline_lives') is not null
$$;

-- Whether appends fold into a version.
create function refold.is_live(of_name text, of_version integer) returns boolean language sql stable as $$
  select
    exists (select from refold.inline_versions where name = of_name and version = of_version and status = 'live')
    and not exists (select from refold.inline_departures where name = of_name and version = of_version)
$$;

-- As in migration 0012. A version that is leaving is where it was when that was announced.
create or replace function refold.reached(of_name text, of_version integer, checkpoint bigint) returns bigint language sql stable as $$
  select case
    when exists (
      select
      from refold.inline_versions
      where name = of_name and version = of_version and status = 'live'
    )
    then greatest(
      checkpoint,
      coalesce(
        (select min(position) from refold.inline_departures where name = of_name and version = of_version),
        pg_sequence_last_value('refold.events_position_seq'),
        0
      )
    )
    else checkpoint
  end
$$;

-- Who left had the version's lock alone, and everything done in one transaction; what still does so is to fail rather than to do half of it.
drop function refold.leave_inline(text, integer, boolean);

-- Has appends leave a version alone from now on, where they fold into it. Waits for nobody but `settle_inline`. Where this transaction is rolled
-- back, nothing has happened. Gives how many leaves have been announced; null where there is nothing to leave.
create function refold.announce_leave(of_name text, of_version integer, passing boolean) returns bigint
language plpgsql volatile as $$
declare
  key bigint;
  leaves bigint;
begin
  select refold.inline_leave_key(lock_key) into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return null;
  end if;
  perform pg_advisory_xact_lock_shared(key);
  if not refold.is_live(of_name, of_version) then
    return null;
  end if;
  leaves := refold.count_leave();
  -- The position is read after the announcement.
  insert into refold.inline_departures (name, version, position, passing)
  values (of_name, of_version, coalesce(pg_sequence_last_value('refold.events_position_seq'), 0), announce_leave.passing);
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return leaves;
end $$;

-- Ends a leave once all appends are over that had entered the version, or announced that it is left, before they could see the announcement. Its
-- table is the fold of the log up to the least position of the departures then, and its processor goes on from there. Gives whether the
-- version is out of `live`; where it is not, end the transaction and try again. Nobody new comes, so that this never starves, and
-- nobody waits behind it, since it doesn't wait.
create function refold.settle_inline(of_name text, of_version integer) returns boolean language plpgsql volatile as $$
declare
  key bigint;
  folded bigint;
  passed boolean;
begin
  select lock_key into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return true;
  end if;
  -- Without a departure the lock would not come free, and appends would wait for this transaction.
  if refold.is_live(of_name, of_version) then
    return false;
  end if;
  if not pg_try_advisory_xact_lock(key) or not pg_try_advisory_xact_lock(refold.inline_leave_key(key)) then
    return false;
  end if;
  with settled as (
    delete from refold.inline_departures
    where name = of_name and version = of_version
    returning position, passing
  )
  select min(position), bool_or(passing) into folded, passed from settled;
  if folded is null then
    return true; -- somebody else has settled it meanwhile
  end if;
  update refold.inline_versions
  -- It joins again five seconds after that; one second is enough for an operator's step to begin.
  set status = 'building', passed_at = clock_timestamp() - case when passed then interval '0' else interval '4 seconds' end
  where name = of_name and version = of_version;
  update refold.processors
  set checkpoint = folded, epoch = epoch + 1, status = 'idle', error = null, updated_at = now()
  where name = of_name and version = of_version;
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return true;
end $$;

-- As in migration 0018, with versions that are left without a wait.
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
  if current_setting('transaction_isolation') <> 'read committed' and refold.was_ever_live() then
    perform refold.refuse_isolation();
  end if;
  for entry in
    select name, version
    from refold.inline_versions
    where status = 'live' and (of_families is null or families && of_families)
    order by lock_key
  loop
    done := refold.announce_leave(entry.name, entry.version, true);
  end loop;
end $$;

-- The leave locks that others hold.
create function refold.inline_leaving() returns bigint[] language sql volatile as $$
  select coalesce(array_agg(classid::bigint << 32 | objid::bigint), '{}')
  from pg_locks
  where locktype = 'advisory' and objsubid = 1 and granted and pid is distinct from pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint >> 16 = 21074
$$;

-- As in migration 0018. Leaves that were announced up to `leaves` are committed, so that they are seen below, or rolled back, or held in
-- `leaving`: a version that somebody is leaving is left by this append, too, since whether the other one commits is not known. Where all of
-- them are over and settled, which a session looks at once for each announcement, it is `quiet`. Those that come later are seen by
-- `refold.append` once it has drawn the positions.
create or replace function refold.enter_inline(
  of_families text[], names text[], versions int[], whole_keys bigint[], whole boolean[], row_owners int[], row_keys bigint[],
  lock_timeout_ms int
) returns text[] language plpgsql volatile as $$
declare
  tables text[] := array_fill(null::text, array[cardinality(names)]);
  leaves bigint;
  own_leave bigint;
  leaving bigint[] := '{}';
  quiet boolean;
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
  leaves := pg_sequence_last_value('refold.inline_leaves');
  if leaves is null then
    raise exception 'permission denied for sequence inline_leaves' using errcode = 'insufficient_privilege';
  end if;
  quiet := coalesce(leaves::text = current_setting('refold.leaves_over', true), false);
  if not quiet then
    leaving := refold.inline_leaving();
    quiet := leaving = '{}' and not exists (select from refold.inline_departures);
    if quiet then
      done := set_config('refold.leaves_over', leaves::text, false);
    end if;
  end if;
  for entry in
    select name, version, lock_key, families && of_families as concerned
    from refold.inline_versions
    where status = 'live'
    order by lock_key
  loop
    if not quiet and not refold.is_live(entry.name, entry.version) then
      continue;
    end if;
    number := array_position(names, entry.name);
    while versions[number] <> entry.version loop
      number := array_position(names, entry.name, number + 1);
    end loop;
    if (number is null and entry.concerned) or (number <= cardinality(whole) and refold.inline_leave_key(entry.lock_key) = any (leaving)) then
      own_leave := refold.announce_leave(entry.name, entry.version, number is null);
      -- Where another one came in between, refold.append tells.
      if own_leave = leaves + 1 then
        leaves := own_leave;
      end if;
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
      if not quiet and not refold.is_live(entry.name, entry.version) then
        tables[number] := null;
      end if;
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
  done := set_config('refold.folding', case when some_live then leaves::text else '' end, true);
  return tables;
end $$;

-- As in migration 0018, and an append that has entered inline versions is refused where one of them was left before its positions were drawn: the
-- caller enters again.
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
  folding   text := ''; -- how many leaves had been announced when it entered; empty where it folds nothing
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
    folding := current_setting('refold.folding');
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
