-- A version may be processed by several owners, each of which folds the keys of its partition.
alter table refold.processors
  -- of how many partitions this one is
  add column partitions integer not null default 1,
  -- after a change of their number, up to where the rows of which keys were folded before: { until, layers: [{ of, checkpoints }] }
  add column floors jsonb;

alter table refold.changes add column partition integer not null default 0;
alter table refold.changes drop constraint changes_pkey;
alter table refold.changes add primary key (name, version, partition, checkpoint);
