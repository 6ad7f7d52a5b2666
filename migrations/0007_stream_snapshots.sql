-- States of streams, kept so that a long stream need not be folded from its beginning. Nothing depends on them: each can be removed at any
-- time. The fingerprint is of the code that made the state; a state is only read back by the same code.
create table refold.stream_snapshots (
  stream_position bigint not null,
  position        bigint not null, -- of the event at stream_position
  taken_at        timestamptz not null default now(),
  family          text collate "C" not null,
  stream_id       text collate "C" not null,
  fingerprint     text collate "C" not null,
  state           json not null, -- not jsonb, which would change the order of an object's keys
  primary key (family, stream_id, fingerprint, stream_position)
);
