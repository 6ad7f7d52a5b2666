-- Set: recalled. Whatever folds the log again takes the event in, but the table of the moment lacks it: the row is kept until another table,
-- begun after that, has taken its place.
alter table refold.discards add column recalled_at timestamptz;

-- The events that its rows lack because they had been thrown away, as [position, key]: a rebuild can begin from it as long as they still are.
alter table refold.table_snapshots add column lacks jsonb not null default '[]';

update refold.table_snapshots as snapshot
set lacks = (
  select coalesce(jsonb_agg(jsonb_build_array(position, key)), '[]')
  from refold.discards as discard
  where discard.name = snapshot.name
    and discard.version = snapshot.version
    and discard.position <= snapshot.checkpoint
    and discard.at <= snapshot.taken_at
);
