-- Inline projections: versions whose rows commit with the append. While a version is `live`, every append that it wants folds its own
-- events; while it is `building`, appends leave it alone and its processor folds the log, as that of any version.
create table refold.inline_versions (
  name text collate "C" not null,
  version integer not null,
  status text not null default 'building' check (status in ('building', 'live')),
  -- of the events that it reads
  families text[] not null,
  -- of the lock that is held shared by appends that fold into it; made by src/store/lock-keys.ts
  lock_key bigint not null,
  -- when a writer that can't fold has put it out of `live`; null where that was an operator or nobody
  passed_at timestamptz,
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade
);

-- The gate: held shared by every transaction that appends, from before it draws a position to its end. Whoever holds it alone knows that nobody
-- is in between, so a version becomes live under it, and only then. 21070 (0x524e); src/store/lock-keys.ts says the same.
create function refold.inline_gate() returns bigint language sql immutable as $$
  select 21070::bigint << 48
$$;

-- Counts how often versions became live: never, where it has no value. Beside the table, because a sequence is seen in old snapshots, too.
create sequence refold.inline_lives;

-- Where a version is: a live inline version has folded whatever is committed.
create function refold.reached(of_name text, of_version integer, checkpoint bigint) returns bigint language sql stable as $$
  select case
    when exists (
      select
      from refold.inline_versions
      where name = of_name and version = of_version and status = 'live'
    )
    then greatest(checkpoint, coalesce(pg_sequence_last_value('refold.events_position_seq'), 0))
    else checkpoint
  end
$$;

-- Puts a version out of `live`, and tells whether it was. Waits for the appends that are folding into it; those that come meanwhile wait for the
-- end of this transaction, and then leave the version alone. At that moment its table is the fold of everything up to the sequence's last value:
-- what is committed there was folded, what was rolled back was not, and nothing else wanted by it can still appear at or below. So its
-- processor goes on from there.
create function refold.leave_inline(of_name text, of_version integer, passing boolean) returns boolean
language plpgsql volatile as $$
declare
  key bigint;
begin
  select lock_key into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return false;
  end if;
  perform pg_advisory_xact_lock(key);
  update refold.inline_versions
  set status = 'building', passed_at = case when passing then clock_timestamp() end
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return false; -- somebody else has, while this transaction waited
  end if;
  update refold.processors
  set checkpoint = coalesce(pg_sequence_last_value('refold.events_position_seq'), 0), epoch = epoch + 1, status = 'idle', error = null, updated_at = now()
  where name = of_name and version = of_version;
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return true;
end $$;

create function refold.refuse_isolation() returns void language plpgsql as $$
begin
  raise exception 'Where there are inline projections, events are appended in transactions that are READ COMMITTED, found %.', upper(current_setting('transaction_isolation'))
    using errcode = 'invalid_transaction_state', hint = 'Begin the transaction without another isolation level.';
end $$;

-- Entered by an append that folds nothing, before it locks streams or draws positions: live versions that want its families (null: of any
-- family) are put out of `live`, so that nothing is missed silently.
create function refold.pass_inline(of_families text[]) returns void language plpgsql volatile as $$
declare
  entry record;
begin
  perform pg_advisory_xact_lock_shared(refold.inline_gate());
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

-- Entered by an append that can fold into the given versions, before it locks streams or draws positions. The first of them want its events,
-- as many as there are in `whole`; the others are known, and there is nothing for them. Gives for each of them the table to fold
-- into; null: leave it alone. Locks the rows that its events touch, so that their order is that of the positions drawn afterwards:
-- `row_owners` and `row_keys` name them, sorted by key; `whole_keys` is the lock of all rows of a version, taken shared beside its rows' locks,
-- or alone where `whole` says that the rows are too many or not known yet.
--
-- Every statement below sees what was committed before it: a version is live at the end exactly where its lock was free to be shared then.
create function refold.enter_inline(
  of_families text[], names text[], versions int[], whole_keys bigint[], whole boolean[], row_owners int[], row_keys bigint[],
  lock_timeout_ms int
) returns text[] language plpgsql volatile as $$
declare
  tables text[] := array_fill(null::text, array[cardinality(names)]);
  entry record;
  some_live boolean := false;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform refold.refuse_isolation();
  end if;
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', lock_timeout_ms::text, true);
  end if;
  perform pg_advisory_xact_lock_shared(refold.inline_gate());
  for entry in
    select inline.name, inline.version, inline.lock_key, known.number
    from refold.inline_versions inline
    left join unnest(names, versions) with ordinality known (name, version, number) using (name, version)
    where inline.status = 'live' and (known.number is not null or inline.families && of_families)
    order by inline.lock_key
  loop
    if entry.number is null then
      perform refold.leave_inline(entry.name, entry.version, true);
    elsif entry.number <= cardinality(whole) then
      perform pg_advisory_xact_lock_shared(entry.lock_key);
      tables[entry.number] := (
        select projections.table_name
        from refold.inline_versions inline
        join refold.projections using (name, version)
        where inline.name = entry.name and inline.version = entry.version and inline.status = 'live'
      );
      some_live := some_live or tables[entry.number] is not null;
    end if;
  end loop;
  if some_live then
    for entry in
      select number, whole_keys[number] as key, whole[number] as alone
      from generate_subscripts(whole, 1) number
      where tables[number] is not null
      order by key
    loop
      if entry.alone then
        perform pg_advisory_xact_lock(entry.key);
      else
        perform pg_advisory_xact_lock_shared(entry.key);
      end if;
    end loop;
    perform pg_advisory_xact_lock(key)
    from unnest(row_owners, row_keys) with ordinality touched (owner, key, number)
    where tables[owner] is not null;
  end if;
  perform set_config('refold.entered', of_families::text, true);
  return tables;
end $$;

-- As in migration 0001, and whoever inserts without refold.append passes inline projections: of which family its rows are can't be told before.
create or replace function refold.tag_writer() returns trigger language plpgsql as $$
declare
  last bigint;
begin
  if coalesce(current_setting('refold.appending', true), '') = '' then
    perform refold.pass_inline(null);
  end if;
  if coalesce(current_setting('refold.tag', true), '') = '' then
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    perform pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    perform set_config('refold.tag', last::text, true);
  end if;
  return null;
end $$;

-- As in migration 0003, with inline versions where they are.
create or replace view refold.lag as
select
  projections.name,
  projections.version,
  processors.partition,
  projections.state,
  processors.checkpoint,
  log.head,
  greatest(log.head - processors.checkpoint, 0) as positions,
  unread.events,
  unread.exact,
  coalesce(greatest(extract(epoch from clock_timestamp() - unread.oldest), 0), 0)::float8 as seconds
from refold.projections
join (
  select name, version, partition, refold.reached(name, version, checkpoint) as checkpoint
  from refold.processors
) processors using (name, version)
cross join lateral (select coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) as head) log
cross join lateral refold.unread(
  processors.checkpoint,
  array(
    select (filter ->> 'family') || '.' || type
    from jsonb_array_elements(projections.definition -> 'filter') filter
    cross join jsonb_array_elements_text(filter -> 'types') type
  ),
  10000
) unread
where projections.state not in ('retired', 'failed');

-- As in migration 0010, but for what concerns inline projections: after the time-out of locks, and around the insert.
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
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', lock_timeout_ms::text, true); -- of this transaction, which is this statement
  end if;
  -- Who can fold has entered with the families of this batch just before; everybody else passes.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    perform refold.pass_inline(families);
  else
    if not families <@ current_setting('refold.entered')::text[] then
      perform refold.pass_inline(families);
    end if;
    perform set_config('refold.entered', '', true);
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
  perform set_config('refold.appending', 'yes', true); -- the trigger has nothing to look after
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
  perform set_config('refold.appending', '', true);

  if positions is not null then
    perform pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $$;
