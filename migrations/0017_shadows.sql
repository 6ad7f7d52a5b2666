-- Ready versions that answer some of the live queries again, for nobody: what they say is compared with what the active version says.
create table refold.shadows (
  name text collate "C" not null,
  version integer not null,
  -- about one query of so many
  one_of integer not null check (one_of >= 1),
  started_at timestamptz not null default now(),
  stopped_at timestamptz,
  same bigint not null default 0,
  different bigint not null default 0,
  -- the version could not answer
  failed bigint not null default 0,
  -- not compared: the two were never at one position, or there was too much to do
  skipped bigint not null default 0,
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade
);

-- What was different, once for each operation and place in its answer. Holds what clients were answered: for operators only.
create table refold.shadow_examples (
  name text collate "C" not null,
  version integer not null,
  operation text collate "C" not null,
  path text collate "C" not null,
  times bigint not null default 1,
  -- the last ones, as JSON, cut where they are long
  older text not null,
  newer text not null,
  position bigint,
  seen_at timestamptz not null default now(),
  primary key (name, version, operation, path),
  foreign key (name, version) references refold.shadows on delete cascade
);
