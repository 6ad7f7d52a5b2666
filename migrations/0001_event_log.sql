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
left join pg_prepared_xacts prepared on tags.virtualtransaction = '-1/' || prepared.transaction
order by tags.tag;


-- Appends a batch of independent appends in one statement. An append is atomic over its streams; one that is refused
-- does not touch its neighbours. The number of statements inside does not grow with the batch.
--
-- In:  the batch's distinct streams (families, stream_ids), its appends' idempotency keys (null: none has one), its parts
--      in the order of the appends (one stream of one append: which append, which stream, the expected version, how many
--      events) and all events in the order of the parts.
--      Expected versions: n >= 1 exactly n, 0 no stream, -1 any, -2 an existing stream.
-- Out: verdicts, one per append: 0 written, -1 its key was used before, else the number of the part that was refused, with
--      the version found there in actuals;
--      starts, one per part: its stream's version before it, null where its append was not written;
--      positions of the written events in order; earlier, the stored results by key.
create function refold.append(
  families text[],
  stream_ids text[],
  keys text[],
  part_appends int[],
  part_streams int[],
  part_expected bigint[],
  part_sizes int[],
  new_events json,
  out verdicts int[],
  out actuals bigint[],
  out starts bigint[],
  out positions bigint[],
  out recorded timestamptz,
  out earlier jsonb
) language plpgsql volatile
  -- Plans are kept for long and may be made while a table is still empty; these keep them to the indexes.
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  appends   constant int := part_appends[cardinality(part_appends)];
  parts     constant int := cardinality(part_appends);
  versions  bigint[]; -- of the streams, as decided so far
  before    bigint[]; -- of the streams, as found
  used_keys text[] := '{}';
  written   int := 0; -- events
  first_written int[]; -- of each append, its first event's place among the written ones
  part      int := 1;
  first     int;
  actual    bigint;
  expected  bigint;
  verdict   int;
begin
  verdicts := array_fill(0, array[appends]);
  actuals := array_fill(null::bigint, array[appends]);
  starts := array_fill(null::bigint, array[parts]);

  if keys is not null then
    first_written := array_fill(null::int, array[appends]);
    -- Waits for a concurrent append with the same key. Sorted, here and below, so that no two batches wait for each other.
    loop
      insert into refold.append_keys (key)
      select distinct key from unnest(keys) key where key is not null order by key
      on conflict do nothing;

      select coalesce(jsonb_object_agg(key, result) filter (where result is not null), '{}')
      into earlier
      from refold.append_keys where key = any (keys)
      having count(*) = (select count(distinct key) from unnest(keys) key);
      exit when found; -- else a key was removed in between
    end loop;
  end if;

  -- Makes missing streams and locks existing ones: a row that conflicts is locked whether or not it is updated.
  insert into refold.streams (family, stream_id, version)
  select family, stream_id, 0
  from unnest(families, stream_ids) wanted (family, stream_id)
  order by family, stream_id
  on conflict (family, stream_id) do update set version = 0 where false;

  select array_agg(streams.version order by number)
  into versions
  from unnest(families, stream_ids) with ordinality wanted (family, stream_id, number)
  join refold.streams using (family, stream_id);
  before := versions;

  -- Each append in turn sees what those before it in the batch have done.
  for append in 1 .. appends loop
    verdict := 0;
    first := part;
    if keys[append] is not null and (earlier ? keys[append] or keys[append] = any (used_keys)) then
      verdict := -1;
    end if;
    while part_appends[part] = append loop
      if verdict = 0 then
        actual := versions[part_streams[part]];
        expected := part_expected[part];
        if actual <> expected and expected <> -1 and (expected <> -2 or actual = 0) then
          verdict := part;
          actuals[append] := actual;
        end if;
      end if;
      part := part + 1;
    end loop;
    if verdict = 0 then
      if keys[append] is not null then
        used_keys := used_keys || keys[append];
        first_written[append] := written + 1;
      end if;
      for p in first .. part - 1 loop
        starts[p] := versions[part_streams[p]];
        versions[part_streams[p]] := starts[p] + part_sizes[p];
        written := written + part_sizes[p];
      end loop;
    else
      verdicts[append] := verdict;
    end if;
  end loop;

  if written > 0 then
    recorded := clock_timestamp();
    -- The rows come in the order of the array, and positions are drawn in the order of the rows.
    with inserted as (
      insert into refold.events
        (stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata)
      select
        starts[event.part] + event.number, recorded, event.id, event.version,
        event.family, event.stream, event.type, event.payload, coalesce(event.metadata, '{}')
      from json_to_recordset(new_events) as event (
        part int, number int, id uuid, version smallint,
        family text, stream text, type text, payload jsonb, metadata jsonb
      )
      where starts[event.part] is not null
      returning position
    )
    select array_agg(position order by position) into positions from inserted;

    update refold.streams
    set version = wanted.version
    from unnest(families, stream_ids, versions, before) wanted (family, stream_id, version, before)
    where streams.family = wanted.family
      and streams.stream_id = wanted.stream_id
      and wanted.version > wanted.before;

    perform pg_notify('refold_events', positions[written]::text);
  end if;

  -- What was made for appends that were then refused.
  if 0 = any (versions) then
    delete from refold.streams
    using unnest(families, stream_ids, versions) wanted (family, stream_id, version)
    where streams.family = wanted.family
      and streams.stream_id = wanted.stream_id
      and wanted.version = 0;
  end if;

  if keys is not null then
    update refold.append_keys
    set result = jsonb_build_object(
      'recordedAt', recorded,
      'streams', written_append.streams,
      'positions', to_jsonb(positions[written_append.first : written_append.first + written_append.size - 1])
    )
    from (
      select
        keys[append] as key,
        first_written[append] as first,
        sum(part_size) as size,
        jsonb_agg(jsonb_build_array(families[stream], stream_ids[stream], start + part_size) order by number) as streams
      from unnest(part_appends, part_streams, part_sizes, starts)
        with ordinality written_part (append, stream, part_size, start, number)
      where start is not null and keys[append] is not null
      group by append
    ) written_append
    where append_keys.key = written_append.key;

    delete from refold.append_keys where key = any (keys) and result is null;
  end if;
end $$;
