-- From where on the changes of a version are all kept: whoever knows its rows as of here, or later, can be told what became of them.
create table refold.change_floors (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  primary key (name, version)
);

-- What was pruned so far is not known.
insert into refold.change_floors (name, version, position)
select name, version, max(refold.reached(name, version, checkpoint))
from refold.processors
group by name, version;

-- In triggers, so that it holds for whoever prunes or builds anew, processes of older releases included.
create function refold.raise_floor_of_changes() returns trigger language plpgsql as $$
begin
  insert into refold.change_floors as floor (name, version, position)
  select name, version, max(checkpoint)
  from forgotten
  group by name, version
  order by name, version
  on conflict (name, version) do update
  set position = greatest(floor.position, excluded.position);
  return null;
end
$$;

create trigger raise_floor
after delete on refold.changes
referencing old table as forgotten
for each statement execute function refold.raise_floor_of_changes();

-- While a version is built nobody is told of its changes, and a new generation has other rows without any.
create function refold.begin_changes() returns trigger language plpgsql as $$
begin
  insert into refold.change_floors as floor (name, version, position)
  select name, version, max(refold.reached(name, version, checkpoint))
  from refold.processors
  where name = new.name and version = new.version
  group by name, version
  on conflict (name, version) do update
  set position = greatest(floor.position, excluded.position);
  return null;
end
$$;

create trigger begin_changes
after update on refold.projections
for each row
when (old.generation <> new.generation or (old.state = 'building' and new.state <> 'building'))
execute function refold.begin_changes();
