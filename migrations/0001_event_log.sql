-- The event log: streams, events in one global order, idempotency keys, and how appenders are tagged so that readers
-- know up to which position nothing more can appear (docs: the horizon).

create table refold.streams (
  version   bigint not null,
  family    text collate "C" not null,
  stream_id text collate "C" not null,
  primary key (family, stream_id)
) with (fillfactor = 80); -- room for the next version of a row in its own page, without a new index entry

create table refold.events (
  position        bigint generated always as identity (cache 1), -- a cache would hand positions out of order
  stream_position bigint not null,
  recorded_at     timestamptz not null default clock_timestamp(),
  id              uuid not null default gen_random_uuid(),
  payload_version smallint not null default 1,
  family          text collate "C" not null,
  stream_id       text collate "C" not null,
  type            text collate "C" not null,
  payload         jsonb not null,
  metadata        jsonb not null default '{}',
  primary key (position),
  unique (family, stream_id, stream_position)
);

create table refold.append_keys (
  recorded_at timestamptz not null default clock_timestamp(),
  key         text collate "C" primary key,
  result      jsonb
);


-- Events are immutable. Statement triggers cost inserts nothing.
create function refold.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'Events are immutable: % on refold.events is refused.', tg_op
    using errcode = 'restrict_violation', hint = 'Append an event that corrects the earlier one.';
end $$;

create trigger events_are_immutable
  before update or delete or truncate on refold.events
  for each statement execute function refold.refuse_change();


-- A writer's tag: a shared advisory lock, held to the end of its transaction, whose key carries a position below
-- every position that the transaction will draw. 21062 (0x5246) in the top bits marks it among other advisory locks;
-- src/store/lock-keys.ts says the same.
--
-- The first tag of a transaction is its lowest and serves for all of it: a transaction of a million inserts must not fill
-- the server's lock table. The local setting that remembers it is undone by a rollback to a savepoint exactly when
-- the lock is.
create function refold.tag_writer() returns trigger language plpgsql as $$
declare
  last bigint;
begin
  if coalesce(current_setting('refold.tag', true), '') = '' then
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    perform pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    perform set_config('refold.tag', last::text, true);
  end if;
  return null;
end $$;

create trigger tag_writer
  before insert on refold.events
  for each statement execute function refold.tag_writer();


create view refold.tags as
select
  held.pid,
  held.virtualtransaction,
  ((held.classid::bigint & 65535) << 32) | held.objid::bigint as tag
from pg_locks held
where held.locktype = 'advisory'
  and held.objsubid = 1 -- keys of one bigint
  and held.classid::bigint >> 16 = 21062
  and held.database = (select oid from pg_database where datname = current_database());

-- The position up to which the log is complete for every snapshot taken after this function returned: nothing at or
-- below it can still appear. The order matters: first the ceiling, then the tags, and the events only in a later statement.
-- A writer that drew a position up to the ceiling was tagged before; if its tag is gone at the scan, its transaction
-- has ended, and what it committed is visible to every later snapshot.
create function refold.horizon() returns bigint language plpgsql volatile as $$
declare
  ceiling bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  lowest_tag bigint;
begin
  select min(tag) into lowest_tag from refold.tags;
  return least(ceiling, lowest_tag);
end $$;

-- Who holds the horizon back, the lowest first.
create view refold.stalls as
select
  tags.tag,
  tags.pid,
  coalesce(session.application_name, 'prepared transaction ' || prepared.gid) as application_name,
  coalesce(session.state, 'prepared') as state,
  extract(epoch from clock_timestamp() - coalesce(session.xact_start, prepared.prepared))::float8 as seconds,
  session.query
from refold.tags
left join pg_stat_activity session on session.pid = tags.pid
left join pg_locks own_id
  on tags.pid is null -- a prepared transaction
  and own_id.locktype = 'transactionid'
  and own_id.virtualtransaction = tags.virtualtransaction
left join pg_prepared_xacts prepared on prepared.transaction = own_id.transactionid
order by tags.tag;


-- Appends a batch of independent appends in one statement. An append is atomic over its streams; one that is refused
-- does not touch its neighbours. The number of statements inside does not grow with the batch.
--
-- In:  the batch's distinct streams with the number of events for each, in the order in which they are locked (every
--      caller must keep to one order, or they deadlock); its appends' idempotency keys (null: none has one);
--      its parts in the order of the appends (one stream of one append: which append, which stream, the expected
--      version, how many events it has, how many earlier parts of the batch have for the same stream);
--      all events in the order of the parts.
--      Expected versions: n >= 1 exactly n, 0 no stream, -1 any, -2 an existing stream.
-- Out: starts, one per part: its stream's version before it, null where its append was not written;
--      positions of the written events, in order; verdicts, one per append, or null where all were written: 0 written,
--      -1 its key was used before, else the number of the part that was refused, with the version found there in
--      actuals; earlier, the stored results by key.
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
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded
    );
  end if;
end $$;

-- Takes the keys that are free and gives the results of those that are used. Waits for a concurrent append with one of the
-- keys. The keys are sorted so that no two batches wait for each other.
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
    exit when found; -- else a key was removed in between
  end loop;
  return results;
end $$;

-- Decides the appends one after the other; each sees what those before it in the batch have done.
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
  expected  bigint;
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
      expected := part_expected[part];
      actual := versions[part_streams[part]];
      if verdict = 0 and expected <> actual and expected <> -1 and (expected <> -2 or actual = 0) then
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

-- Takes what was not written off the versions of the streams; a stream that was made for it goes again.
create function refold.take_back(
  families text[], stream_ids text[], stream_sizes int[], part_streams int[], part_sizes int[], starts bigint[]
) returns void language plpgsql volatile
  -- Plans are kept for long and may be made while a table is still empty; these keep them to the indexes.
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

-- Keeps the results of written appends under their keys, and frees the keys of the others.
create function refold.store_append_results(
  families text[], stream_ids text[], keys text[], part_appends int[], part_streams int[], part_sizes int[],
  starts bigint[], positions bigint[], recorded timestamptz
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
  )
  from (
    select
      keys[append] as key,
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


-- A page of the log, by filter, in its order. A function for the sake of its settings: with statistics that lag behind a
-- growing log the planner would collect and sort everything that is left instead of walking the key up to the limit.
create function refold.read_events(after bigint, up_to bigint, wanted text[], page_size int)
returns setof refold.events language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set work_mem = '32MB' -- a page on its way out stays in memory
as $$
begin
  return query
  select *
  from refold.events
  where position > after
    and position <= up_to
    and family || '.' || type = any (wanted)
  order by position
  limit page_size;
end $$;
