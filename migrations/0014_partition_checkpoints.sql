-- Read models whose rows a Citus cluster distributes over its workers, by partition (placement 'partition' of a read store). A batch is one
-- transaction of the worker that has the partition: it writes the rows and this row. The registry, which is on another worker, learns of it after
-- that. In every other database, the table is empty.
--
-- Needs: 0003_registry
-- Older processes: can run beside it

create table refold.partition_checkpoints (
  partition integer not null,
  -- of a version, or of a rebuild
  table_name text collate "C" not null,
  -- the position up to which the rows are folded
  checkpoint bigint not null,
  anchor text,
  -- the epoch of the last claim in refold.processors; batches of older claims fail
  epoch bigint not null default 0,
  -- the last batch, as src/store/distributed/partition-checkpoints.ts writes it: whoever claims the partition records it in the registry, if its owner
  -- could not
  batch jsonb,
  -- whether rows were changed outside of a batch, and subscribers must read them again
  rewritten boolean not null default false,
  primary key (partition, table_name)
) with (fillfactor = 50);
