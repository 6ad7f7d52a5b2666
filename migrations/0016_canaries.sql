-- Ready versions that some clients are answered by before they become active: one for each projection.
create table refold.canaries (
  name text collate "C" primary key,
  version integer not null,
  -- of the clients that can be told apart
  percent double precision not null check (percent between 0 and 100),
  -- a header that leads to it, and the value that it must have; null for none, and for any
  header text,
  header_value text,
  started_at timestamptz not null default now(),
  foreign key (name, version) references refold.projections on delete cascade
);
