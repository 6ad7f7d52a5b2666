-- How often rows of a distributed read model were written outside of a batch, as a retry of dead letters does: counted beside the rows and in the
-- registry, which are on two workers of a Citus cluster. If they differ, one of them has lost its last transactions.
--
-- Needs: 0003_registry, 0014_partition_checkpoints
-- Older processes: can run beside it

alter table refold.processors add column rewrites bigint not null default 0;
alter table refold.partition_checkpoints add column rewrites bigint not null default 0;
