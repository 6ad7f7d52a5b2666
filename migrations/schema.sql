-- What the migrations add up to. Written by scripts/dump-schema.ts; not meant to be run.

create table refold.append_keys (
  recorded_at timestamp with time zone not null default clock_timestamp(),
  key text collate "C" not null,
  result jsonb
);

alter table refold.append_keys add constraint append_keys_pkey PRIMARY KEY (key);

create table refold.changes (
  name text collate "C" not null,
  version integer not null,
  checkpoint bigint not null,
  upserted jsonb not null,
  deleted jsonb not null,
  at timestamp with time zone not null default now()
);

alter table refold.changes add constraint changes_pkey PRIMARY KEY (name, version, checkpoint);

CREATE INDEX changes_by_age ON refold.changes USING btree (at);

create table refold.dead_letters (
  id bigint not null generated always as identity,
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  key jsonb,
  position bigint not null,
  event_type text not null,
  stream_id text not null,
  error jsonb,
  attempts integer not null default 1,
  at timestamp with time zone not null default now()
);

alter table refold.dead_letters add constraint dead_letters_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.dead_letters add constraint dead_letters_pkey PRIMARY KEY (id);

CREATE INDEX dead_letters_of_table ON refold.dead_letters USING btree (table_name, key, "position");

create table refold.events (
  position bigint not null generated always as identity,
  stream_position bigint not null,
  recorded_at timestamp with time zone not null default clock_timestamp(),
  id uuid not null default gen_random_uuid(),
  payload_version smallint not null default 1,
  family text collate "C" not null,
  stream_id text collate "C" not null,
  type text collate "C" not null,
  payload jsonb not null,
  metadata jsonb not null default '{}'::jsonb
);

alter table refold.events add constraint events_family_stream_id_stream_position_key UNIQUE (family, stream_id, stream_position);

alter table refold.events add constraint events_pkey PRIMARY KEY ("position");

CREATE TRIGGER events_are_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON refold.events FOR EACH STATEMENT EXECUTE FUNCTION refold.refuse_change();

CREATE TRIGGER tag_writer BEFORE INSERT ON refold.events FOR EACH STATEMENT EXECUTE FUNCTION refold.tag_writer();

create table refold.leases (
  kind text not null,
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  holder uuid not null,
  expires_at timestamp with time zone not null
) with (fillfactor=50);

alter table refold.leases add constraint leases_pkey PRIMARY KEY (kind, name, version, partition);

create table refold.migrations (
  name character varying(255) not null,
  timestamp character varying(255) not null
);

alter table refold.migrations add constraint migrations_pkey PRIMARY KEY (name);

create table refold.migrations_lock (
  id character varying(255) not null,
  is_locked integer not null default 0
);

alter table refold.migrations_lock add constraint migrations_lock_pkey PRIMARY KEY (id);

create table refold.old_tables (
  table_schema text not null,
  table_name text not null,
  drop_after timestamp with time zone not null
);

alter table refold.old_tables add constraint old_tables_pkey PRIMARY KEY (table_schema, table_name);

create table refold.processors (
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  checkpoint bigint not null default 0,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle'::text,
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  started_at timestamp with time zone,
  updated_at timestamp with time zone not null default now()
) with (fillfactor=50);

alter table refold.processors add constraint processors_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.processors add constraint processors_pkey PRIMARY KEY (name, version, partition);

alter table refold.processors add constraint processors_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'stopped'::text])));

create table refold.projections (
  name text collate "C" not null,
  version integer not null,
  state text not null,
  table_schema text not null,
  table_name text not null,
  table_fingerprint text not null,
  code_fingerprint text not null,
  definition jsonb not null,
  held_reason text,
  generation integer not null default 1,
  declared_at timestamp with time zone not null default now(),
  state_changed_at timestamp with time zone not null default now()
);

alter table refold.projections add constraint projections_pkey PRIMARY KEY (name, version);

alter table refold.projections add constraint projections_state_check CHECK ((state = ANY (ARRAY['building'::text, 'ready'::text, 'active'::text, 'retired'::text, 'failed'::text])));

create table refold.rebuilds (
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  checkpoint bigint not null default 0,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle'::text,
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  requested_by text not null,
  reason text not null,
  requested_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  updated_at timestamp with time zone not null default now()
) with (fillfactor=50);

alter table refold.rebuilds add constraint rebuilds_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.rebuilds add constraint rebuilds_pkey PRIMARY KEY (name, version);

alter table refold.rebuilds add constraint rebuilds_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'stopped'::text])));

create table refold.streams (
  version bigint not null,
  family text collate "C" not null,
  stream_id text collate "C" not null
) with (fillfactor=80);

alter table refold.streams add constraint streams_pkey PRIMARY KEY (family, stream_id);

create table refold.transitions (
  id bigint not null generated always as identity,
  name text collate "C" not null,
  version integer not null,
  from_state text,
  to_state text not null,
  actor text not null,
  reason text not null,
  at timestamp with time zone not null default now()
);

alter table refold.transitions add constraint transitions_pkey PRIMARY KEY (id);

CREATE INDEX transitions_of_version ON refold.transitions USING btree (name, version, id);

create view refold.stalls as
 SELECT tags.tag,
    tags.pid,
    COALESCE(session.application_name, ('prepared transaction '::text || prepared.gid)) AS application_name,
    COALESCE(session.state, 'prepared'::text) AS state,
    (EXTRACT(epoch FROM (clock_timestamp() - COALESCE(session.xact_start, prepared.prepared))))::double precision AS seconds,
    session.query
   FROM (((refold.tags
     LEFT JOIN pg_stat_activity session ON ((session.pid = tags.pid)))
     LEFT JOIN pg_locks own_id ON (((tags.pid IS NULL) AND (own_id.locktype = 'transactionid'::text) AND (own_id.virtualtransaction = tags.virtualtransaction))))
     LEFT JOIN pg_prepared_xacts prepared ON ((prepared.transaction = own_id.transactionid)))
  ORDER BY tags.tag;

create view refold.tags as
 SELECT pid,
    virtualtransaction,
    ((((classid)::bigint & (65535)::bigint) << 32) | (objid)::bigint) AS tag
   FROM pg_locks held
  WHERE ((locktype = 'advisory'::text) AND (objsubid = 1) AND (((classid)::bigint >> 16) = 21062) AND (database = ( SELECT pg_database.oid
           FROM pg_database
          WHERE (pg_database.datname = current_database()))));

CREATE OR REPLACE FUNCTION refold.append(families text[], stream_ids text[], stream_sizes integer[], keys text[], part_appends integer[], part_streams integer[], part_expected bigint[], part_sizes integer[], part_offsets integer[], new_events json, OUT starts bigint[], OUT positions bigint[], OUT recorded timestamp with time zone, OUT verdicts integer[], OUT actuals bigint[], OUT earlier jsonb)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION refold.claim_append_keys(keys text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION refold.decide_appends(versions bigint[], keys text[], earlier jsonb, part_appends integer[], part_streams integer[], part_expected bigint[], part_sizes integer[], OUT starts bigint[], OUT verdicts integer[], OUT actuals bigint[])
 RETURNS record
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION refold.horizon()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  ceiling bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  lowest_tag bigint;
begin
  select min(tag) into lowest_tag from refold.tags;
  return least(ceiling, lowest_tag);
end $function$;

CREATE OR REPLACE FUNCTION refold.read_events(after bigint, up_to bigint, wanted text[], page_size integer)
 RETURNS SETOF refold.events
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET work_mem TO '32MB'
AS $function$
begin
  return query
  select *
  from refold.events
  where position > after
    and position <= up_to
    and family || '.' || type = any (wanted)
  order by position
  limit page_size;
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'Events are immutable: % on refold.events is refused.', tg_op
    using errcode = 'restrict_violation', hint = 'Append an event that corrects the earlier one.';
end $function$;

CREATE OR REPLACE FUNCTION refold.store_append_results(families text[], stream_ids text[], keys text[], part_appends integer[], part_streams integer[], part_sizes integer[], starts bigint[], positions bigint[], recorded timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION refold.tag_writer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  last bigint;
begin
  if coalesce(current_setting('refold.tag', true), '') = '' then
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    perform pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    perform set_config('refold.tag', last::text, true);
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.take_back(families text[], stream_ids text[], stream_sizes integer[], part_streams integer[], part_sizes integer[], starts bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
end $function$;

sequence refold.dead_letters_id_seq as bigint start 1 increment 1 cache 1;

sequence refold.events_position_seq as bigint start 1 increment 1 cache 1;

sequence refold.transitions_id_seq as bigint start 1 increment 1 cache 1;
