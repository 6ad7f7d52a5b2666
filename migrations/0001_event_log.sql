-- The event log: streams, events in one global order, idempotency keys, and what makes long streams and repeated imports quick.
--
-- Needs: nothing
-- Older processes: can run beside it

-- The version of each stream. An append locks the rows of its streams: that is the optimistic check.
create table refold.streams (
  version   bigint not null,
  family    text collate "C" not null,
  stream_id text collate "C" not null,
  primary key (family, stream_id)
) with (fillfactor = 80); -- leaves room for a row's next version in the same page, without a new index entry

create table refold.events (
  position        bigint generated always as identity (cache 1), -- a larger cache would hand out positions out of order
  stream_position bigint not null,
  recorded_at     timestamptz not null default clock_timestamp(),
  id              uuid not null default gen_random_uuid(),
  payload_version smallint not null default 1,
  family          text collate "C" not null,
  stream_id       text collate "C" not null,
  type            text collate "C" not null,
  payload         jsonb not null,
  metadata        jsonb not null default '{}',
  primary key (position),
  unique (family, stream_id, stream_position)
);

-- Finds what one request caused. A bloom filter for each 128 pages: appends pay next to nothing for it, and events of one request are near each
-- other. It has room for 4000 different ids in a range; more make it less precise, not wrong.
create index events_by_correlation on refold.events
using brin ((metadata ->> 'correlationId') text_bloom_ops (n_distinct_per_range = 4000))
with (autosummarize = on);

-- Statement triggers cost an insert nothing.
create function refold.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'Events are immutable: % on refold.events is refused.', tg_op
    using errcode = 'restrict_violation', hint = 'Append an event that corrects the earlier one.';
end $$;

create trigger events_are_immutable
before update or delete or truncate on refold.events
for each statement execute function refold.refuse_change();

-- The result of each append that had an idempotency key. A repeat writes nothing and gets this result.
create table refold.append_keys (
  recorded_at timestamptz not null default clock_timestamp(),
  key         text collate "C" primary key,
  result      jsonb -- null only inside the transaction that claims the key; 'input' is the fingerprint of the request
);

-- Keys of clients are deleted after some days. Only they have an input. All other keys are kept as long as the log, except those of steps.
create index append_keys_of_clients on refold.append_keys (recorded_at) where result ? 'input';

-- Keys of reactors' steps are deleted after some days, too.
create index append_keys_of_steps on refold.append_keys (recorded_at)
where not coalesce(result ? 'input', false) and key like '%:%/________-____-____-____-____________/%';

-- Ranges of imported files whose appends are all in the log, by a hash of their idempotency keys. A repeated import skips such a range at
-- once instead of sending each append to find its key.
create table refold.import_ranges (
  digest      bytea primary key,
  recorded_at timestamptz not null default clock_timestamp()
);

-- States of long streams. They save folding a stream from its beginning. Each can be deleted at any time.
create table refold.stream_snapshots (
  stream_position bigint not null,
  position        bigint not null, -- of the event at stream_position
  taken_at        timestamptz not null default now(),
  family          text collate "C" not null,
  stream_id       text collate "C" not null,
  fingerprint     text collate "C" not null, -- of the code that folded the state; only the same code reads it
  state           json not null, -- not jsonb, which would change the order of an object's keys
  primary key (family, stream_id, fingerprint, stream_position)
);
