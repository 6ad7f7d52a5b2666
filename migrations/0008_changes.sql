-- The changes of read tables, which subscriptions follow.
--
-- Needs: 0002_horizon, 0003_registry, 0004_inline, 0007_processors
-- Older processes: can run beside it

-- One row for each batch that changed rows of a version: the changed keys, at the batch's checkpoint. Kept for 15 minutes.
create table refold.changes (
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  checkpoint bigint not null,
  upserted jsonb not null,
  deleted jsonb not null,
  traceparent text, -- the span that wrote the rows, if it is recorded
  at timestamptz not null default now(),
  primary key (name, version, partition, checkpoint)
);
create index changes_by_age on refold.changes (at);

-- The position from which all changes of a version are kept. A reader that knows the rows as of this position or later can follow the changes.
create table refold.change_floors (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  primary key (name, version)
);

-- Moves the floor of a version up to a position. A floor never goes down.
create function refold.raise_change_floor(of_name text, of_version integer, up_to bigint) returns void language sql volatile as $$
  insert into refold.change_floors as floor (name, version, position)
  values (of_name, of_version, up_to)
  on conflict (name, version) do update
  set position = greatest(floor.position, excluded.position)
$$;

-- Triggers raise the floors, so they are right, whichever process deletes changes or rebuilds rows. Each raises them in the order of their keys,
-- because two transactions that raise several must not wait for each other.

-- Up to the deleted changes.
create function refold.raise_floors_past_deleted() returns trigger language plpgsql as $$
begin
  perform refold.raise_change_floor(name, version, up_to)
  from (
    select name, version, max(checkpoint) as up_to
    from deleted_changes
    group by name, version
    order by name, version
  ) ordered;
  return null;
end $$;

create trigger raise_floors
after delete on refold.changes
referencing old table as deleted_changes
for each statement execute function refold.raise_floors_past_deleted();

-- Up to where versions are now: the version of a row trigger, or all versions.
create function refold.raise_floors_to_checkpoints() returns trigger language plpgsql as $$
begin
  perform refold.raise_change_floor(name, version, up_to)
  from (
    select name, version, max(refold.reached(name, version, checkpoint)) as up_to
    from refold.processors
    where tg_level = 'STATEMENT' or (name = new.name and version = new.version)
    group by name, version
    order by name, version
  ) ordered;
  return null;
end $$;

-- Truncating the table deletes all changes, and a trigger sees no rows that name the versions.
create trigger raise_all_floors
after truncate on refold.changes
for each statement execute function refold.raise_floors_to_checkpoints();

-- No changes are recorded while a version is building, and a new generation has other rows without any.
create trigger begin_changes
after update on refold.projections
for each row
when (old.generation <> new.generation or (old.state = 'building' and new.state <> 'building'))
execute function refold.raise_floors_to_checkpoints();

-- The changes of a version after the given checkpoints of its partitions, and where it is now: every process with subscribers asks after each batch.
-- Also the anchors of where the version is and of where the caller was. A live inline version is complete up to the horizon, which the caller read
-- before (`complete`), but not beyond where it is: appends that leave it out are above.
--
-- A function because of its settings. As a statement it would be planned again each time, which takes longer than running it: for a few rows a
-- new plan always looks cheaper than the kept one.
create function refold.recent_changes(
  of_name text, of_version int, seen bigint[], max_batches int, known bigint default null, complete bigint default null
)
returns table (
  checkpoints json, read_at float8, live boolean, forgotten bigint, changed_at bigint, upserted jsonb, deleted jsonb, traceparent text,
  anchor text, known_anchor text, server_start bigint
)
language plpgsql stable
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off -- a kept plan may have been made while the tables were small
  set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
  with reached as (
    select
      json_agg(processor.reached::text order by processor.partition) as checkpoints,
      min(processor.reached) as least,
      exists (
        select from refold.inline_versions as inline
        where inline.name = of_name and inline.version = of_version and inline.status = 'live'
      ) as live,
      (
        select floor.position
        from refold.change_floors as floor
        where floor.name = of_name and floor.version = of_version
      ) as forgotten
    from (
      select partition, refold.reached(name, version, checkpoint) as reached
      from refold.processors
      where name = of_name and version = of_version
    ) as processor
  ), anchored as (
    select
      reached.*,
      refold.anchor(case when reached.live then least(complete, reached.least) else reached.least end) as anchor,
      refold.anchor(known) as known_anchor
    from reached
  )
  select
    anchored.checkpoints,
    (extract(epoch from now()) * 1000)::float8,
    anchored.live,
    anchored.forgotten,
    change.checkpoint,
    change.upserted,
    change.deleted,
    change.traceparent,
    anchored.anchor,
    anchored.known_anchor,
    refold.server_start()
  from anchored
  left join lateral (
    select of_partition.*
    from unnest(seen) with ordinality as seen_of (checkpoint, number)
    cross join lateral (
      select change.checkpoint, change.upserted, change.deleted, change.traceparent
      from refold.changes as change
      where change.name = of_name
        and change.version = of_version
        and change.partition = seen_of.number - 1
        and change.checkpoint > seen_of.checkpoint
      order by change.checkpoint
      limit max_batches
    ) as of_partition
  ) as change on true;
end $$;
