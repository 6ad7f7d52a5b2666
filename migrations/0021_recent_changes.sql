-- What a version changed since some checkpoint, and where it is: asked after each batch by every process with subscribers. As a statement of
-- its own it is planned anew each time, which takes longer than running it: for the few rows at hand a plan always looks cheaper than the
-- one that is kept.
create function refold.recent_changes(of_name text, of_version int, seen bigint[], most int)
returns table (
  checkpoints json, read_at float8, live boolean, forgotten bigint, changed_at bigint, upserted jsonb, deleted jsonb
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off -- a plan that is kept may have been made while the tables were small
set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  with reached as (
    select
      json_agg(refold.reached(processor.name, processor.version, processor.checkpoint)::text order by processor.partition) as checkpoints,
      exists (
        select from refold.inline_versions as inline
        where inline.name = of_name and inline.version = of_version and inline.status = 'live'
      ) as live,
      (
        select floor.position
        from refold.change_floors as floor
        where floor.name = of_name and floor.version = of_version
      ) as forgotten
    from refold.processors as processor
    where processor.name = of_name and processor.version = of_version
  )
  select
    reached.checkpoints,
    (extract(epoch from now()) * 1000)::float8,
    reached.live,
    reached.forgotten,
    change.checkpoint,
    change.upserted,
    change.deleted
  from reached
  left join lateral (
    select of_partition.*
    from unnest(seen) with ordinality as seen_of (checkpoint, number)
    cross join lateral (
      select change.checkpoint, change.upserted, change.deleted
      from refold.changes as change
      where change.name = of_name
        and change.version = of_version
        and change.partition = seen_of.number - 1
        and change.checkpoint > seen_of.checkpoint
      order by change.checkpoint
      limit most
    ) as of_partition
  ) as change on true;
end $$;
