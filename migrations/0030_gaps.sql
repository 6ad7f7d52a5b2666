-- Which events `onError: 'skip'` has left out of a table: they hold an activation as dead letters do, and time travel and `refold verify`
-- leave out what the database refused.
create table refold.skips (
  name text collate "C" not null,
  version integer not null,
  -- a table of the version: the one that serves, one of a rebuild, or a snapshot's copy
  table_name text not null,
  position bigint not null,
  -- null where it could not be told
  key jsonb,
  -- by the database: evolve does not fail on it again
  refused boolean not null,
  foreign key (name, version) references refold.projections (name, version) on delete cascade
);

create index skips_of_table on refold.skips (table_name, position);

-- Counted from the table when it takes over.
alter table refold.rebuilds drop column events_skipped;
