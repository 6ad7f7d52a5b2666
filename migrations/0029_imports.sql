-- Ranges of imported files whose appends are all in the log, by a hash of their idempotency keys: a repeat skips such a range at once,
-- instead of sending each append to find its key.
create table refold.import_ranges (
  digest bytea primary key,
  recorded_at timestamptz not null default clock_timestamp()
);
