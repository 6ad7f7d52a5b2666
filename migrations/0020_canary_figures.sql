-- How a canary does beside the others, since it began: operations that queried or mutated, and those of them whose answer had errors. Added up
-- every few seconds by all gateways.
alter table refold.canaries
  add column operations bigint not null default 0,
  add column errors bigint not null default 0,
  add column other_operations bigint not null default 0,
  add column other_errors bigint not null default 0;
