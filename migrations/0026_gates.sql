-- A ready version that would bring dead letters with it is held for them.
alter table refold.projections drop constraint projections_held_by_check;
alter table refold.projections
  add constraint projections_held_by_check check (held_by in ('operator', 'breaking', 'verification', 'dead-letters'));

-- As in migration 0012, with failed versions: how far one is behind is still worth knowing.
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
where projections.state <> 'retired';

-- A rebuild beside the table that serves can be complete and wait for an operator.
alter table refold.rebuilds
  -- why it does not take over by itself; null while it is under way
  add column held_reason text,
  -- an operator takes its table with the dead letters that it has
  add column dead_letters_accepted boolean not null default false;

-- Processes that only answer clients announce themselves, too.
alter table refold.processes
  -- gateway, worker or all; null of a process of an older release, which only announced itself where it maintained something
  add column role text,
  -- the projection versions that it declares, as cart_summary@2
  add column versions text[] not null default '{}';

-- To empty the table of changes forgets as much as to delete from it, and there are no rows to tell of which versions.
create function refold.raise_all_floors_of_changes() returns trigger language plpgsql as $$
begin
  insert into refold.change_floors as floor (name, version, position)
  select name, version, max(refold.reached(name, version, checkpoint))
  from refold.processors
  group by name, version
  order by name, version
  on conflict (name, version) do update
  set position = greatest(floor.position, excluded.position);
  return null;
end
$$;

create trigger raise_all_floors
after truncate on refold.changes
for each statement execute function refold.raise_all_floors_of_changes();
