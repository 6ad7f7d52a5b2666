-- What clients ask for, by day: so that an operator knows whom a change would meet. Written by every gateway every few seconds, added up.
create table refold.field_usage (
  -- 'CartSummary.totalAmount', 'Query.cartSummaries(where:)', 'CartSummaryFilter.status', 'Status.Open', or a type that documents name
  path text collate "C" not null,
  -- in UTC
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null,
  -- the versions that the client pinned, such as 'cart_summary@1,customer_profile@2'; empty where it pinned none
  pins text collate "C" not null,
  operations bigint not null,
  last_at timestamptz not null,
  primary key (path, day, client, client_version, pins)
) with (fillfactor = 70); -- today's rows are updated again and again
create index on refold.field_usage (day);

-- The clients that are told apart on a day: there is a limit, since they name themselves.
create table refold.usage_clients (
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null,
  primary key (day, client, client_version)
);

-- Since when all gateways record. No row where one of them has said that it does not.
create table refold.usage_recording (
  only_row boolean primary key default true check (only_row),
  since timestamptz not null default now()
);
