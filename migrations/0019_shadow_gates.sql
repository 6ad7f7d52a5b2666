-- What a declared version waits for before it becomes active: so many compared queries within so long, of which at most so large a share differ.
alter table refold.shadows
  add column needed_queries integer check (needed_queries >= 1),
  add column most_different double precision check (most_different between 0 and 1),
  add column within_seconds integer check (within_seconds >= 1),
  add constraint shadows_gate_is_whole
    check (num_nonnulls(needed_queries, most_different, within_seconds) in (0, 3));

-- What was compared, by the minute, of the rows that the version has now: those that were built anew are others.
create table refold.shadow_counts (
  name text collate "C" not null,
  version integer not null,
  generation integer not null,
  minute timestamptz not null,
  same bigint not null default 0,
  different bigint not null default 0,
  failed bigint not null default 0,
  primary key (name, version, generation, minute),
  foreign key (name, version) references refold.shadows on delete cascade
);
