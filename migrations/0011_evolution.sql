-- What helps to replace a version: canaries, shadows, and which fields clients use.
--
-- Needs: 0003_registry
-- Older processes: can run beside it

-- Ready versions that serve some clients before they become active, at most one for each projection.
create table refold.canaries (
  name text collate "C" primary key,
  version integer not null,
  -- of the clients that can be told apart
  percent double precision not null check (percent between 0 and 100),
  -- a header that selects it, and the value that the header must have; null for none, and for any
  header text,
  header_value text,
  started_at timestamptz not null default now(),
  -- queries and mutations since it began, and those with errors; then those of other clients. Gateways add theirs every few seconds.
  operations bigint not null default 0,
  errors bigint not null default 0,
  other_operations bigint not null default 0,
  other_errors bigint not null default 0,
  foreign key (name, version) references refold.projections on delete cascade
);

-- Ready versions that execute some live queries again. Nobody gets their responses: they are compared with those of the active version.
create table refold.shadows (
  name text collate "C" not null,
  version integer not null,
  -- about one query of so many
  one_of integer not null check (one_of >= 1),
  -- what the declared version waits for before it becomes active: so many compared queries within so long, at most this share of them different
  needed_queries integer check (needed_queries >= 1),
  max_different double precision check (max_different between 0 and 1),
  within_seconds integer check (within_seconds >= 1),
  started_at timestamptz not null default now(),
  stopped_at timestamptz,
  same bigint not null default 0,
  different bigint not null default 0,
  -- the version could not execute the query
  failed bigint not null default 0,
  -- not compared: the two were never at one position, or there was too much to do
  skipped bigint not null default 0,
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade,
  constraint shadows_gate_is_whole check (num_nonnulls(needed_queries, max_different, within_seconds) in (0, 3))
);

-- The comparisons of each minute, for each table of the version.
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

-- Examples of differences, one for each operation and place in its response. Holds data of clients: for operators only.
create table refold.shadow_examples (
  name text collate "C" not null,
  version integer not null,
  operation text collate "C" not null,
  path text collate "C" not null,
  times bigint not null default 1,
  -- the last ones, as JSON, cut if they are long
  older text not null,
  newer text not null,
  position bigint,
  seen_at timestamptz not null default now(),
  primary key (name, version, operation, path),
  foreign key (name, version) references refold.shadows on delete cascade
);

-- Which fields clients used, by day. Every gateway adds its counts every few seconds.
create table refold.field_usage (
  -- 'CartSummary.totalAmount', 'Query.cartSummaries(where:)', 'CartSummaryFilter.status', 'Status.Open', or a type that documents name
  path text collate "C" not null,
  -- in UTC
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null,
  -- the versions that the client pinned, such as 'cart_summary@1,customer_profile@2'; empty if it pinned none
  pins text collate "C" not null,
  operations bigint not null,
  last_at timestamptz not null,
  primary key (path, day, client, client_version, pins)
) with (fillfactor = 70); -- today's rows are updated often
create index field_usage_day_idx on refold.field_usage (day);

-- The clients of each day that are counted separately. Their number is limited, because clients name themselves.
create table refold.usage_clients (
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null,
  primary key (day, client, client_version)
);

-- Since when all gateways record usage. No row if one of them has announced that it does not.
create table refold.usage_recording (
  only_row boolean primary key default true check (only_row),
  since timestamptz not null default now()
);
