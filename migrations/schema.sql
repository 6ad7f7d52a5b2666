-- What the migrations add up to. Written by scripts/dump-schema.ts; not meant to be run.

create table refold.append_keys (
  recorded_at timestamp with time zone not null default clock_timestamp(),
  key text collate "C" not null,
  result jsonb
);

alter table refold.append_keys add constraint append_keys_pkey PRIMARY KEY (key);

CREATE INDEX append_keys_of_clients ON refold.append_keys USING btree (recorded_at) WHERE (result ? 'input'::text);

CREATE INDEX append_keys_of_steps ON refold.append_keys USING btree (recorded_at) WHERE ((NOT COALESCE((result ? 'input'::text), false)) AND (key ~~ '%:%/________-____-____-____-____________/%'::text));

create table refold.awaited_events (
  reactor text collate "C" not null,
  key text collate "C" not null,
  type text collate "C" not null,
  position bigint not null,
  event_id uuid not null
);

alter table refold.awaited_events add constraint awaited_events_pkey PRIMARY KEY (reactor, key, type, "position");

alter table refold.awaited_events add constraint awaited_events_reactor_fkey FOREIGN KEY (reactor) REFERENCES refold.reactors(name) ON DELETE CASCADE;

CREATE INDEX awaited_events_by_position ON refold.awaited_events USING btree (reactor, "position");

create table refold.canaries (
  name text collate "C" not null,
  version integer not null,
  percent double precision not null,
  header text,
  header_value text,
  started_at timestamp with time zone not null default now(),
  operations bigint not null default 0,
  errors bigint not null default 0,
  other_operations bigint not null default 0,
  other_errors bigint not null default 0
);

alter table refold.canaries add constraint canaries_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.canaries add constraint canaries_percent_check CHECK (((percent >= (0)::double precision) AND (percent <= (100)::double precision)));

alter table refold.canaries add constraint canaries_pkey PRIMARY KEY (name);

create table refold.change_floors (
  name text collate "C" not null,
  version integer not null,
  position bigint not null
);

alter table refold.change_floors add constraint change_floors_pkey PRIMARY KEY (name, version);

create table refold.changes (
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  checkpoint bigint not null,
  upserted jsonb not null,
  deleted jsonb not null,
  traceparent text,
  at timestamp with time zone not null default now()
);

alter table refold.changes add constraint changes_pkey PRIMARY KEY (name, version, partition, checkpoint);

CREATE INDEX changes_by_age ON refold.changes USING btree (at);

CREATE TRIGGER raise_all_floors AFTER TRUNCATE ON refold.changes FOR EACH STATEMENT EXECUTE FUNCTION refold.raise_floors_to_checkpoints();

CREATE TRIGGER raise_floors AFTER DELETE ON refold.changes REFERENCING OLD TABLE AS deleted_changes FOR EACH STATEMENT EXECUTE FUNCTION refold.raise_floors_past_deleted();

create table refold.dead_letters (
  id bigint not null generated always as identity,
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  key jsonb,
  position bigint not null,
  event_type text not null,
  stream_id text not null,
  error jsonb,
  attempts integer not null default 1,
  at timestamp with time zone not null default now()
);

alter table refold.dead_letters add constraint dead_letters_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.dead_letters add constraint dead_letters_pkey PRIMARY KEY (id);

CREATE INDEX dead_letters_in_order ON refold.dead_letters USING btree (table_name, id);

CREATE INDEX dead_letters_of_table ON refold.dead_letters USING btree (table_name, key, "position");

CREATE UNIQUE INDEX dead_letters_without_key ON refold.dead_letters USING btree (table_name, "position") WHERE (key IS NULL);

create table refold.discards (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  key jsonb not null,
  event_type text not null,
  stream_id text not null,
  actor text not null,
  reason text not null,
  at timestamp with time zone not null default now(),
  recalled_at timestamp with time zone
);

alter table refold.discards add constraint discards_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.discards add constraint discards_pkey PRIMARY KEY (name, version, "position", key);

create table refold.events (
  position bigint not null generated always as identity,
  stream_position bigint not null,
  recorded_at timestamp with time zone not null default clock_timestamp(),
  id uuid not null default gen_random_uuid(),
  payload_version smallint not null default 1,
  family text collate "C" not null,
  stream_id text collate "C" not null,
  type text collate "C" not null,
  payload jsonb not null,
  metadata jsonb not null default '{}'::jsonb
);

alter table refold.events add constraint events_family_stream_id_stream_position_key UNIQUE (family, stream_id, stream_position);

alter table refold.events add constraint events_pkey PRIMARY KEY ("position");

CREATE INDEX events_by_correlation ON refold.events USING brin (((metadata ->> 'correlationId'::text)) text_bloom_ops (n_distinct_per_range='4000')) WITH (autosummarize='on');

CREATE TRIGGER check_insert AFTER INSERT ON refold.events FOR EACH STATEMENT WHEN ((COALESCE(current_setting('refold.appending'::text, true), ''::text) = ''::text)) EXECUTE FUNCTION refold.check_insert();

CREATE TRIGGER events_are_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON refold.events FOR EACH STATEMENT EXECUTE FUNCTION refold.refuse_change();

CREATE TRIGGER tag_writer BEFORE INSERT ON refold.events FOR EACH STATEMENT EXECUTE FUNCTION refold.tag_writer();

comment on table refold.events is 'The event log. Rows are never changed or removed; a trigger refuses it.';

comment on column refold.events.position is 'The place in the whole log. Rises, with gaps.';

comment on column refold.events.stream_position is 'The place in the stream: 1, 2, 3, … without gaps.';

comment on column refold.events.recorded_at is 'When it was appended, by the clock of the server.';

comment on column refold.events.id is 'The id of the event. Its last eight digits are the anchor of the position.';

comment on column refold.events.payload_version is 'The shape of the payload. Upcasters convert older ones when they are read.';

comment on column refold.events.family is 'The kind of stream, by its stored name.';

comment on column refold.events.stream_id is 'The stream within its family.';

comment on column refold.events.type is 'The type of the event, by its stored name.';

comment on column refold.events.payload is 'What happened.';

comment on column refold.events.metadata is 'Correlation, causation, actor, trace context, and keys of your own.';

create table refold.field_usage (
  path text collate "C" not null,
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null,
  pins text collate "C" not null,
  operations bigint not null,
  last_at timestamp with time zone not null
) with (fillfactor=70);

alter table refold.field_usage add constraint field_usage_pkey PRIMARY KEY (path, day, client, client_version, pins);

CREATE INDEX field_usage_day_idx ON refold.field_usage USING btree (day);

create table refold.import_ranges (
  digest bytea not null,
  recorded_at timestamp with time zone not null default clock_timestamp()
);

alter table refold.import_ranges add constraint import_ranges_pkey PRIMARY KEY (digest);

create table refold.inline_departures (
  name text collate "C" not null,
  version integer not null,
  position bigint not null,
  passing boolean not null
);

CREATE INDEX inline_departures_by_version ON refold.inline_departures USING btree (name, version);

create table refold.inline_versions (
  name text collate "C" not null,
  version integer not null,
  status text not null default 'building'::text,
  families text[] not null,
  lock_key bigint not null,
  passed_at timestamp with time zone,
  types text[] not null default '{}'::text[],
  unique_columns text[],
  rule text,
  changed_at timestamp with time zone not null default now()
);

alter table refold.inline_versions add constraint inline_versions_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.inline_versions add constraint inline_versions_pkey PRIMARY KEY (name, version);

alter table refold.inline_versions add constraint inline_versions_rule_check CHECK ((rule = ANY (ARRAY['pending'::text, 'declared'::text, 'in force'::text])));

alter table refold.inline_versions add constraint inline_versions_status_check CHECK ((status = ANY (ARRAY['building'::text, 'live'::text])));

CREATE INDEX inline_versions_entered ON refold.inline_versions USING btree (lock_key) WHERE ((status = 'live'::text) OR (rule IS NOT NULL));

CREATE TRIGGER inherit_rule AFTER DELETE ON refold.inline_versions FOR EACH ROW WHEN ((old.rule = 'in force'::text)) EXECUTE FUNCTION refold.inherit_rule();

CREATE TRIGGER note_inline_status BEFORE UPDATE ON refold.inline_versions FOR EACH ROW EXECUTE FUNCTION refold.note_inline_status();

comment on column refold.inline_versions.types is 'The event types that it reads, as ''family.type'' with the names in the log.';

comment on column refold.inline_versions.unique_columns is 'Its unique columns; null if it has none.';

comment on column refold.inline_versions.rule is 'Whose appends are refused while its unique values can''t be checked: ''pending'' nobody''s yet, ''declared'' those of processes that declare it, ''in force'' everybody''s; null if it has no unique columns.';

comment on column refold.inline_versions.changed_at is 'When its status changed.';

create table refold.leases (
  kind text not null,
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  holder uuid not null,
  expires_at timestamp with time zone not null
) with (fillfactor=50);

alter table refold.leases add constraint leases_pkey PRIMARY KEY (kind, name, version, partition);

create table refold.migrations (
  name character varying(255) not null,
  timestamp character varying(255) not null
);

alter table refold.migrations add constraint migrations_pkey PRIMARY KEY (name);

create table refold.migrations_lock (
  id character varying(255) not null,
  is_locked integer not null default 0
);

alter table refold.migrations_lock add constraint migrations_lock_pkey PRIMARY KEY (id);

create table refold.old_tables (
  table_schema text not null,
  table_name text not null,
  drop_after timestamp with time zone not null
);

alter table refold.old_tables add constraint old_tables_pkey PRIMARY KEY (table_schema, table_name);

create table refold.partition_checkpoints (
  partition integer not null,
  table_name text collate "C" not null,
  checkpoint bigint not null,
  anchor text,
  epoch bigint not null default 0,
  batch jsonb,
  rewritten boolean not null default false,
  rewrites bigint not null default 0
) with (fillfactor=50);

alter table refold.partition_checkpoints add constraint partition_checkpoints_pkey PRIMARY KEY (partition, table_name);

create table refold.processes (
  id uuid not null,
  name text not null,
  role text,
  versions text[] not null default '{}'::text[],
  declares text[] not null,
  owns text[] not null,
  keeps text[] not null,
  started_at timestamp with time zone not null default clock_timestamp(),
  heartbeat_at timestamp with time zone not null default clock_timestamp(),
  payload_versions jsonb not null default '{}'::jsonb,
  reactor_versions jsonb not null default '{}'::jsonb,
  announcement_hash bigint not null generated always as (hash_array_extended(ARRAY[hash_array_extended(declares, (0)::bigint), hash_array_extended(owns, (0)::bigint), hash_array_extended(keeps, (0)::bigint), jsonb_hash_extended(payload_versions, (0)::bigint), jsonb_hash_extended(reactor_versions, (0)::bigint)], (0)::bigint)) stored,
  code jsonb not null default '{}'::jsonb,
  ownership text,
  maintains text[] not null default '{}'::text[]
) with (fillfactor=50);

alter table refold.processes add constraint processes_pkey PRIMARY KEY (id);

comment on table refold.processes is 'The running processes. One that was killed stays for a while; its heartbeat_at is older than 15 seconds.';

comment on column refold.processes.id is 'Drawn by the process at its start.';

comment on column refold.processes.name is 'Such as web-1:4711: the host and the process id, or a chosen name.';

comment on column refold.processes.role is 'gateway, worker or all.';

comment on column refold.processes.versions is 'The versions that it declares, such as cart_summary@2.';

comment on column refold.processes.declares is 'The units of work that it could do, such as "processor cart_summary@2/0".';

comment on column refold.processes.owns is 'Those that it does.';

comment on column refold.processes.keeps is 'Those of them that it keeps at any load.';

comment on column refold.processes.started_at is 'When it started.';

comment on column refold.processes.heartbeat_at is 'When it last reported.';

comment on column refold.processes.payload_versions is 'The payload versions that it can read, by family and type, above 1.';

comment on column refold.processes.reactor_versions is 'The versions of reactors that it declares, other than 1.';

comment on column refold.processes.announcement_hash is 'Differs whenever the process announces something else.';

comment on column refold.processes.code is 'The versions that it folds, such as cart_summary@2, each with a hash of the code that does it.';

comment on column refold.processes.ownership is 'Its runtime.ownership: advisory, lease or memory. Null if it maintains nothing.';

comment on column refold.processes.maintains is 'The versions and reactors that it maintains, such as cart_summary@2.';

create table refold.processors (
  name text collate "C" not null,
  version integer not null,
  partition integer not null default 0,
  partitions integer not null default 1,
  checkpoint bigint not null default 0,
  anchor text,
  floors jsonb,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle'::text,
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  events_skipped bigint not null default 0,
  retries bigint not null default 0,
  retrying jsonb,
  started_at timestamp with time zone,
  updated_at timestamp with time zone not null default now(),
  rewrites bigint not null default 0
) with (fillfactor=50);

alter table refold.processors add constraint processors_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.processors add constraint processors_pkey PRIMARY KEY (name, version, partition);

alter table refold.processors add constraint processors_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'stopped'::text])));

create table refold.projections (
  name text collate "C" not null,
  version integer not null,
  state text not null,
  held_by text,
  held_reason text,
  paused_at timestamp with time zone,
  paused_by text,
  paused_reason text,
  table_schema text not null,
  table_name text not null,
  table_fingerprint text not null,
  code_fingerprint text not null,
  definition jsonb not null,
  generation integer not null default 1,
  declared_at timestamp with time zone not null default now(),
  state_changed_at timestamp with time zone not null default now()
);

alter table refold.projections add constraint projections_held_by_check CHECK ((held_by = ANY (ARRAY['operator'::text, 'breaking'::text, 'verification'::text, 'dead-letters'::text, 'partial'::text])));

alter table refold.projections add constraint projections_pkey PRIMARY KEY (name, version);

alter table refold.projections add constraint projections_state_check CHECK ((state = ANY (ARRAY['building'::text, 'ready'::text, 'active'::text, 'retired'::text, 'failed'::text])));

CREATE TRIGGER begin_changes AFTER UPDATE ON refold.projections FOR EACH ROW WHEN (((old.generation <> new.generation) OR ((old.state = 'building'::text) AND (new.state <> 'building'::text)))) EXECUTE FUNCTION refold.raise_floors_to_checkpoints();

CREATE TRIGGER begin_rule AFTER UPDATE OF state ON refold.projections FOR EACH ROW WHEN ((new.state = 'active'::text)) EXECUTE FUNCTION refold.begin_rule();

comment on table refold.projections is 'The registry: every version that was ever declared.';

comment on column refold.projections.name is 'The read model.';

comment on column refold.projections.version is 'The version of the read model.';

comment on column refold.projections.state is 'building, ready, active, retired or failed.';

comment on column refold.projections.held_by is 'What keeps a ready version from becoming active: operator, breaking, verification, dead-letters or partial.';

comment on column refold.projections.held_reason is 'The same in words, with the way out.';

comment on column refold.projections.paused_at is 'When an operator paused it; null if it is not paused.';

comment on column refold.projections.paused_by is 'Who paused it.';

comment on column refold.projections.paused_reason is 'Why.';

comment on column refold.projections.table_schema is 'The schema of its read table.';

comment on column refold.projections.table_name is 'Its read table. The stable view has the name of the read model.';

comment on column refold.projections.table_fingerprint is 'A hash of the declared table.';

comment on column refold.projections.code_fingerprint is 'A hash of the code that fills the table.';

comment on column refold.projections.definition is 'What the declaration says: columns, events, relations, GraphQL names.';

comment on column refold.projections.generation is 'How many tables the version has had: each rebuild adds one.';

comment on column refold.projections.declared_at is 'When a process first declared it.';

comment on column refold.projections.state_changed_at is 'When it got its state.';

create table refold.reactor_attempts (
  reactor text collate "C" not null,
  epoch bigint not null,
  process text not null,
  events jsonb not null,
  begun_position bigint not null default 0
) with (fillfactor=50);

alter table refold.reactor_attempts add constraint reactor_attempts_pkey PRIMARY KEY (reactor);

alter table refold.reactor_attempts add constraint reactor_attempts_reactor_fkey FOREIGN KEY (reactor) REFERENCES refold.reactors(name) ON DELETE CASCADE;

create table refold.reactor_instances (
  reactor text collate "C" not null,
  position bigint not null,
  event_id uuid not null,
  event_type text not null,
  stream_id text not null,
  key text not null,
  step text not null,
  work text not null,
  types text[] not null,
  awaited_key text collate "C" not null,
  received bigint[] not null,
  due timestamp with time zone,
  since timestamp with time zone not null default clock_timestamp(),
  woken boolean not null default false
);

alter table refold.reactor_instances add constraint reactor_instances_pkey PRIMARY KEY (reactor, "position");

alter table refold.reactor_instances add constraint reactor_instances_reactor_fkey FOREIGN KEY (reactor) REFERENCES refold.reactors(name) ON DELETE CASCADE;

CREATE INDEX due_instances ON refold.reactor_instances USING btree (reactor, due) WHERE (NOT woken);

CREATE INDEX instances_of_awaited_key ON refold.reactor_instances USING btree (reactor, awaited_key) WHERE (NOT woken);

CREATE INDEX woken_instances ON refold.reactor_instances USING btree (reactor, "position") WHERE woken;

create table refold.reactor_letters (
  reactor text collate "C" not null,
  position bigint not null,
  key text not null,
  event_type text not null,
  stream_id text not null,
  error jsonb,
  attempts integer not null,
  requested text,
  at timestamp with time zone not null default now()
);

alter table refold.reactor_letters add constraint reactor_letters_pkey PRIMARY KEY (reactor, "position");

alter table refold.reactor_letters add constraint reactor_letters_reactor_fkey FOREIGN KEY (reactor) REFERENCES refold.reactors(name) ON DELETE CASCADE;

alter table refold.reactor_letters add constraint reactor_letters_requested_check CHECK ((requested = ANY (ARRAY['retry'::text, 'discard'::text])));

CREATE INDEX reactor_letters_of_key ON refold.reactor_letters USING btree (reactor, key, "position");

CREATE INDEX requested_reactor_letters ON refold.reactor_letters USING btree (reactor, key) WHERE (requested IS NOT NULL);

create table refold.reactor_operations (
  id bigint not null generated always as identity,
  reactor text collate "C" not null,
  operation text not null,
  from_position bigint,
  to_position bigint not null,
  actor text not null,
  reason text not null,
  at timestamp with time zone not null default now()
);

alter table refold.reactor_operations add constraint reactor_operations_pkey PRIMARY KEY (id);

CREATE INDEX operations_of_reactor ON refold.reactor_operations USING btree (reactor, id);

create table refold.reactor_versions (
  reactor text collate "C" not null,
  version integer not null,
  from_position bigint not null,
  begun_at timestamp with time zone not null default now()
);

alter table refold.reactor_versions add constraint reactor_versions_pkey PRIMARY KEY (reactor, version);

alter table refold.reactor_versions add constraint reactor_versions_reactor_fkey FOREIGN KEY (reactor) REFERENCES refold.reactors(name) ON DELETE CASCADE;

create table refold.reactors (
  name text collate "C" not null,
  checkpoint bigint not null,
  anchor text,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle'::text,
  error jsonb,
  paused boolean not null default false,
  generation integer not null default 1,
  events_handled bigint not null default 0,
  events_skipped bigint not null default 0,
  steps_kept_since timestamp with time zone,
  awaits text[] not null default '{}'::text[],
  declared_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  updated_at timestamp with time zone not null default now()
) with (fillfactor=50);

alter table refold.reactors add constraint reactors_pkey PRIMARY KEY (name);

alter table refold.reactors add constraint reactors_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'stopped'::text])));

create table refold.rebuilds (
  name text collate "C" not null,
  version integer not null,
  form text not null default 'beside'::text,
  table_name text not null,
  snapshot_id bigint,
  started_at_position bigint not null default 0,
  checkpoint bigint not null default 0,
  anchor text,
  epoch bigint not null default 0,
  owner text,
  status text not null default 'idle'::text,
  error jsonb,
  events_folded bigint not null default 0,
  rows_written bigint not null default 0,
  state_before text,
  held_reason text,
  dead_letters_accepted boolean not null default false,
  requested_by text not null,
  reason text not null,
  requested_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  updated_at timestamp with time zone not null default now()
) with (fillfactor=50);

alter table refold.rebuilds add constraint rebuilds_form_check CHECK ((form = ANY (ARRAY['beside'::text, 'in place'::text])));

alter table refold.rebuilds add constraint rebuilds_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.rebuilds add constraint rebuilds_pkey PRIMARY KEY (name, version);

alter table refold.rebuilds add constraint rebuilds_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'stopped'::text])));

create table refold.runs (
  name text collate "C" not null,
  version integer not null,
  partition integer not null,
  kind text not null,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  from_position bigint not null,
  to_position bigint not null,
  batches integer not null default 1,
  events bigint not null,
  rows bigint not null,
  busy_ms bigint not null
) with (fillfactor=50);

alter table refold.runs add constraint runs_pkey PRIMARY KEY (name, version, partition, kind, started_at);

comment on table refold.runs is 'The work of each processor in intervals of ten seconds, kept for seven days. An interval without work has no row.';

comment on column refold.runs.name is 'The read model.';

comment on column refold.runs.version is 'The version of the read model.';

comment on column refold.runs.partition is 'The partition, from 0.';

comment on column refold.runs.kind is 'processor, or rebuild for a table that is built beside the one that serves.';

comment on column refold.runs.started_at is 'The start of the interval.';

comment on column refold.runs.ended_at is 'The end of its last batch.';

comment on column refold.runs.from_position is 'The checkpoint at the start.';

comment on column refold.runs.to_position is 'The checkpoint at the end.';

comment on column refold.runs.batches is 'Transactions.';

comment on column refold.runs.events is 'Events folded.';

comment on column refold.runs.rows is 'Rows written.';

comment on column refold.runs.busy_ms is 'Milliseconds of work.';

create table refold.shadow_examples (
  name text collate "C" not null,
  version integer not null,
  operation text collate "C" not null,
  path text collate "C" not null,
  times bigint not null default 1,
  older text not null,
  newer text not null,
  position bigint,
  seen_at timestamp with time zone not null default now()
);

alter table refold.shadow_examples add constraint shadow_examples_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.shadows(name, version) ON DELETE CASCADE;

alter table refold.shadow_examples add constraint shadow_examples_pkey PRIMARY KEY (name, version, operation, path);

create table refold.shadows (
  name text collate "C" not null,
  version integer not null,
  one_of integer not null,
  started_at timestamp with time zone not null default now(),
  stopped_at timestamp with time zone,
  same bigint not null default 0,
  different bigint not null default 0,
  failed bigint not null default 0,
  skipped bigint not null default 0
);

alter table refold.shadows add constraint shadows_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.shadows add constraint shadows_one_of_check CHECK ((one_of >= 1));

alter table refold.shadows add constraint shadows_pkey PRIMARY KEY (name, version);

create table refold.skips (
  name text collate "C" not null,
  version integer not null,
  table_name text not null,
  position bigint not null,
  key jsonb,
  refused boolean not null
);

alter table refold.skips add constraint skips_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

CREATE INDEX skips_of_table ON refold.skips USING btree (table_name, "position");

CREATE UNIQUE INDEX skips_without_key ON refold.skips USING btree (table_name, "position") WHERE (key IS NULL);

create table refold.stream_snapshots (
  stream_position bigint not null,
  position bigint not null,
  taken_at timestamp with time zone not null default now(),
  family text collate "C" not null,
  stream_id text collate "C" not null,
  fingerprint text collate "C" not null,
  state json not null
);

alter table refold.stream_snapshots add constraint stream_snapshots_pkey PRIMARY KEY (family, stream_id, fingerprint, stream_position);

create table refold.streams (
  version bigint not null,
  family text collate "C" not null,
  stream_id text collate "C" not null
) with (fillfactor=80);

alter table refold.streams add constraint streams_pkey PRIMARY KEY (family, stream_id);

create table refold.table_snapshots (
  id bigint not null generated always as identity,
  name text collate "C" not null,
  version integer not null,
  table_schema text not null,
  table_name text not null,
  checkpoint bigint not null,
  row_count bigint not null,
  bytes bigint not null,
  events_folded bigint not null,
  lacks jsonb not null default '[]'::jsonb,
  table_fingerprint text not null,
  code_fingerprint text not null,
  automatic boolean not null,
  actor text not null,
  reason text not null,
  taken_at timestamp with time zone not null default now(),
  anchor text
);

alter table refold.table_snapshots add constraint table_snapshots_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.table_snapshots add constraint table_snapshots_pkey PRIMARY KEY (id);

CREATE INDEX table_snapshots_of_version ON refold.table_snapshots USING btree (name, version, checkpoint, id);

comment on column refold.table_snapshots.anchor is 'The checkpoint with its anchor, as in processors.';

create table refold.transitions (
  id bigint not null generated always as identity,
  name text collate "C" not null,
  version integer not null,
  from_state text,
  to_state text not null,
  actor text not null,
  reason text not null,
  at timestamp with time zone not null default now()
);

alter table refold.transitions add constraint transitions_pkey PRIMARY KEY (id);

CREATE INDEX transitions_of_version ON refold.transitions USING btree (name, version, id);

comment on table refold.transitions is 'The audit log of versions: every change of a state, and every requested rebuild.';

comment on column refold.transitions.id is 'The order of the transitions.';

comment on column refold.transitions.name is 'The read model.';

comment on column refold.transitions.version is 'The version of the read model.';

comment on column refold.transitions.from_state is 'The state before; null for a new version.';

comment on column refold.transitions.to_state is 'The state after. The same as before if something else was changed.';

comment on column refold.transitions.actor is 'Who did it: a process, or a user and host.';

comment on column refold.transitions.reason is 'Why.';

comment on column refold.transitions.at is 'When.';

create table refold.usage_clients (
  day date not null,
  client text collate "C" not null,
  client_version text collate "C" not null
);

alter table refold.usage_clients add constraint usage_clients_pkey PRIMARY KEY (day, client, client_version);

create table refold.usage_recording (
  only_row boolean not null default true,
  since timestamp with time zone not null default now()
);

alter table refold.usage_recording add constraint usage_recording_only_row_check CHECK (only_row);

alter table refold.usage_recording add constraint usage_recording_pkey PRIMARY KEY (only_row);

create table refold.verifications (
  name text collate "C" not null,
  version integer not null,
  kind text not null,
  round bigint not null default 0,
  owner text,
  busy_until timestamp with time zone,
  next_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  position bigint,
  rows_compared bigint,
  differences bigint,
  total_rows_compared bigint not null default 0,
  total_differences bigint not null default 0,
  samples jsonb,
  found_at timestamp with time zone
) with (fillfactor=50);

alter table refold.verifications add constraint verifications_kind_check CHECK ((kind = ANY (ARRAY['activation'::text, 'audit'::text])));

alter table refold.verifications add constraint verifications_name_version_fkey FOREIGN KEY (name, version) REFERENCES refold.projections(name, version) ON DELETE CASCADE;

alter table refold.verifications add constraint verifications_pkey PRIMARY KEY (name, version, kind);

comment on table refold.verifications is 'The comparisons of rows with the log: before an activation, and repeated as an audit.';

comment on column refold.verifications.name is 'The read model.';

comment on column refold.verifications.version is 'The version of the read model.';

comment on column refold.verifications.kind is 'activation or audit.';

comment on column refold.verifications.round is 'How many have ended.';

comment on column refold.verifications.owner is 'The process that compares now.';

comment on column refold.verifications.busy_until is 'Until when that process has it, unless it renews this.';

comment on column refold.verifications.next_at is 'When the next one is due.';

comment on column refold.verifications.ended_at is 'When the last one ended.';

comment on column refold.verifications.position is 'The position at which the last one compared.';

comment on column refold.verifications.rows_compared is 'Rows that the last one compared.';

comment on column refold.verifications.differences is 'Rows of the last one that differed.';

comment on column refold.verifications.total_rows_compared is 'Rows that all of them compared.';

comment on column refold.verifications.total_differences is 'Rows of all of them that differed.';

comment on column refold.verifications.samples is 'The last rows found to differ, until the version is rebuilt.';

comment on column refold.verifications.found_at is 'When these were found.';

create view refold.advisory_locks as
 SELECT pid,
    virtualtransaction,
    mode,
    granted,
    (((classid)::bigint << 32) | (objid)::bigint) AS key
   FROM pg_locks
  WHERE ((locktype = 'advisory'::text) AND (objsubid = 1) AND (database = ( SELECT pg_database.oid
           FROM pg_database
          WHERE (pg_database.datname = current_database()))));

create view refold.lag as
 SELECT projections.name,
    projections.version,
    processors.partition,
    projections.state,
    processors.checkpoint,
    log.head,
    GREATEST((log.head - processors.checkpoint), (0)::bigint) AS positions,
    unread.events,
    unread.exact,
    (COALESCE(GREATEST(EXTRACT(epoch FROM (clock_timestamp() - unread.oldest)), (0)::numeric), (0)::numeric))::double precision AS seconds,
    (projections.paused_at IS NOT NULL) AS paused,
    ((projections.definition ->> 'startAfter'::text))::bigint AS starts_after
   FROM (((refold.projections
     JOIN ( SELECT processors_1.name,
            processors_1.version,
            processors_1.partition,
            refold.reached(processors_1.name, processors_1.version, processors_1.checkpoint) AS checkpoint
           FROM refold.processors processors_1) processors USING (name, version))
     CROSS JOIN LATERAL ( SELECT COALESCE(pg_sequence_last_value('refold.events_position_seq'::regclass), (0)::bigint) AS head) log)
     CROSS JOIN LATERAL refold.unread(processors.checkpoint, ARRAY( SELECT (((filter.value ->> 'family'::text) || '.'::text) || type.value)
           FROM (jsonb_array_elements((projections.definition -> 'filter'::text)) filter(value)
             CROSS JOIN LATERAL jsonb_array_elements_text((filter.value -> 'types'::text)) type(value))), 10000) unread(events, exact, oldest))
  WHERE (projections.state <> 'retired'::text);

comment on view refold.lag is 'How far each processor is behind the log: one row for each partition of a version that is not retired.';

comment on column refold.lag.name is 'The read model, such as cart_summary.';

comment on column refold.lag.version is 'The version of the read model.';

comment on column refold.lag.partition is 'The partition, from 0.';

comment on column refold.lag.state is 'The state of the version: building, ready, active or failed.';

comment on column refold.lag.checkpoint is 'The position up to which events are folded.';

comment on column refold.lag.head is 'The last position that was drawn.';

comment on column refold.lag.positions is 'Positions between the two, with gaps and with events of other types.';

comment on column refold.lag.events is 'Events that it handles and has not folded yet. Beyond 10,000 positions, only those among the first of them.';

comment on column refold.lag.exact is 'Whether events counts all of them.';

comment on column refold.lag.seconds is 'The age of the first of them, 0 if there is none.';

comment on column refold.lag.paused is 'Whether an operator has paused the version.';

comment on column refold.lag.starts_after is 'Of a partial version: the position after which it begins.';

create view refold.stalls as
 SELECT tags.tag,
    tags.pid,
    COALESCE(session.application_name, ('prepared transaction '::text || prepared.gid)) AS application_name,
    COALESCE(session.state, 'prepared'::text) AS state,
    (EXTRACT(epoch FROM (clock_timestamp() - COALESCE(session.xact_start, prepared.prepared))))::double precision AS seconds,
    session.query,
    (COALESCE(session.usename, prepared.owner))::text AS role,
    host(session.client_addr) AS client_address
   FROM (((refold.tags
     LEFT JOIN pg_stat_activity session ON ((session.pid = tags.pid)))
     LEFT JOIN pg_locks own_id ON (((tags.pid IS NULL) AND (own_id.locktype = 'transactionid'::text) AND (own_id.virtualtransaction = tags.virtualtransaction))))
     LEFT JOIN pg_prepared_xacts prepared ON ((prepared.transaction = own_id.transactionid)))
  ORDER BY tags.tag;

comment on view refold.stalls is 'The transactions that append now. The first one holds the horizon back: events above its tag can''t be read until it ends.';

comment on column refold.stalls.tag is 'The last position that was drawn before the transaction drew its first.';

comment on column refold.stalls.pid is 'The process id of the session; null for a prepared transaction.';

comment on column refold.stalls.application_name is 'The name that the session gave itself.';

comment on column refold.stalls.state is 'The state of the session, or prepared.';

comment on column refold.stalls.seconds is 'How long the transaction is open.';

comment on column refold.stalls.query is 'The last statement of the session; null without the right to see it.';

comment on column refold.stalls.role is 'The role of the session.';

comment on column refold.stalls.client_address is 'The address of the client; null for a local socket.';

create view refold.tags as
 SELECT pid,
    virtualtransaction,
    (key & (((1)::bigint << 48) - 1)) AS tag
   FROM refold.advisory_locks
  WHERE ((key >> 48) = 21062);

create view refold.throughput as
 SELECT name,
    version,
    partition,
    kind,
    (sum(events))::bigint AS events,
    (sum(rows))::bigint AS rows,
    ((sum(events))::double precision / seconds) AS events_per_second,
    ((sum(rows))::double precision / seconds) AS rows_per_second,
    ((sum((to_position - from_position)))::double precision / seconds) AS positions_per_second,
    (((sum(busy_ms))::double precision / (1000)::double precision) / seconds) AS busy_share
   FROM ( SELECT runs.name,
            runs.version,
            runs.partition,
            runs.kind,
            runs.started_at,
            runs.ended_at,
            runs.from_position,
            runs.to_position,
            runs.batches,
            runs.events,
            runs.rows,
            runs.busy_ms,
            (GREATEST((10)::numeric, EXTRACT(epoch FROM (now() - min(runs.started_at) OVER (PARTITION BY runs.name, runs.version, runs.partition, runs.kind)))))::double precision AS seconds
           FROM refold.runs
          WHERE (runs.started_at >= (now() - '00:01:00'::interval))) recent
  GROUP BY name, version, partition, kind, seconds;

comment on view refold.throughput is 'The rates of each processor over the last minute, by kind of work. A processor without work in that minute has no row.';

comment on column refold.throughput.name is 'The read model.';

comment on column refold.throughput.version is 'The version of the read model.';

comment on column refold.throughput.partition is 'The partition, from 0.';

comment on column refold.throughput.kind is 'processor, or rebuild for a table that is built beside the one that serves.';

comment on column refold.throughput.events is 'Events folded.';

comment on column refold.throughput.rows is 'Rows written.';

comment on column refold.throughput.events_per_second is 'Events folded per second.';

comment on column refold.throughput.rows_per_second is 'Rows written per second.';

comment on column refold.throughput.positions_per_second is 'Positions of the log passed per second.';

comment on column refold.throughput.busy_share is 'The share of the time in which it worked, from 0 to 1.';

CREATE OR REPLACE FUNCTION refold.anchor(of_position bigint)
 RETURNS text
 LANGUAGE plpgsql
 STABLE STRICT
 SET enable_seqscan TO 'off'
AS $function$
begin
  if of_position = 0 or of_position > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then
    return null;
  end if;
  return coalesce(
    (
      select right(event.id::text, 8)
      from refold.events as event
      where event.position <= of_position
      order by event.position desc
      limit 1
    ),
    '00000000'
  );
end $function$;

CREATE OR REPLACE FUNCTION refold.announce_leave(of_name text, of_version integer, passing boolean)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  key bigint;
  leaves bigint;
begin
  select refold.inline_leave_key(lock_key) into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return null;
  end if;
  -- The leave lock, to the end of this transaction: appends that enter meanwhile find it in refold.advisory_locks.
  perform pg_advisory_xact_lock_shared(key);
  if not refold.is_live(of_name, of_version) then
    return null;
  end if;
  leaves := refold.count_leave();
  -- The position is read after the announcement.
  insert into refold.inline_departures (name, version, position, passing)
  values (of_name, of_version, coalesce(pg_sequence_last_value('refold.events_position_seq'), 0), announce_leave.passing);
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return leaves;
end $function$;

CREATE OR REPLACE FUNCTION refold.append(families text[], stream_ids text[], stream_sizes integer[], keys text[], part_appends integer[], part_streams integer[], part_expected bigint[], part_sizes integer[], part_offsets integer[], new_events json, inputs text[] DEFAULT NULL::text[], lock_timeout_ms integer DEFAULT NULL::integer, OUT starts bigint[], OUT positions bigint[], OUT recorded timestamp with time zone, OUT verdicts integer[], OUT actuals bigint[], OUT earlier jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SET jit TO 'off'
AS $function$
declare
  versions  bigint[]; -- of the streams, as if all appends were written
  all_fit   boolean;
  used_keys boolean := false;
  folding   text := ''; -- the number of announced leaves when it entered; empty if it folds nothing
  unchecked text[]; -- types that can't be appended now, because nothing checks their unique values
  done      text;
begin
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true); -- for this transaction, which is this statement
  end if;
  -- A caller that can fold has called refold.enter_inline with these families just before. All others pass.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    unchecked := refold.pass_inline(families);
  else
    unchecked := current_setting('refold.unchecked')::text[];
    if not families <@ current_setting('refold.entered')::text[] then
      unchecked := unchecked || refold.pass_inline(families);
    end if;
    folding := current_setting('refold.folding');
    done := set_config('refold.entered', '', true);
  end if;
  if unchecked <> '{}' then
    unchecked := array(
      select distinct event.family || '.' || event.type
      from json_to_recordset(new_events) as event (family text, type text)
      where event.family || '.' || event.type = any (unchecked)
    );
    if unchecked <> '{}' then
      perform refold.refuse_unchecked(unchecked);
    end if;
  end if;
  if keys is not null then
    earlier := refold.claim_append_keys(keys);
    used_keys := earlier <> '{}' or (select count(key) > count(distinct key) from unnest(keys) key);
  end if;

  -- Locks every stream, and creates missing ones. Assumes the usual case, that every version fits, and corrects it below if not. A single part
  -- has a simpler statement.
  if cardinality(part_streams) = 1 then
    insert into refold.streams (family, stream_id, version)
    values (families[1], stream_ids[1], stream_sizes[1])
    on conflict (family, stream_id) do update set version = streams.version + excluded.version
    returning array[version], array[version - stream_sizes[1]] into versions, starts;

    all_fit := refold.version_fits(part_expected[1], starts[1]);
  else
    with locked as (
      insert into refold.streams (family, stream_id, version)
      select family, stream_id, size
      from unnest(families, stream_ids, stream_sizes) wanted (family, stream_id, size)
      on conflict (family, stream_id) do update set version = streams.version + excluded.version
      returning version
    )
    select array_agg(version) into versions from locked;

    select array_agg(start), bool_and(refold.version_fits(expected, start))
    into starts, all_fit
    from (
      select expected, versions[stream] - stream_sizes[stream] + part_offset as start
      from unnest(part_streams, part_expected, part_offsets) part (stream, expected, part_offset)
    ) part;
  end if;

  -- A refused version, a key that was used before or twice, or a stream that was created although it is only checked.
  if not all_fit or used_keys or 0 = any (versions) then
    select decision.* into starts, verdicts, actuals
    from refold.decide_appends(
      (select array_agg(version - size) from unnest(versions, stream_sizes) stream (version, size)),
      keys, earlier, part_appends, part_streams, part_expected, part_sizes
    ) decision;
    perform refold.take_back(families, stream_ids, stream_sizes, part_streams, part_sizes, starts);
  end if;

  done := set_config('refold.appending', 'yes', true); -- tells the tag trigger that inline versions are handled
  -- The rows come in the order of the array, and positions are drawn in the order of the rows. Their time is read once, when the first row is
  -- computed, so after the tag was taken: if no tag is left from before a time, no event can still appear that was recorded before that time.
  with inserted as (
    insert into refold.events
      (stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata)
    select
      starts[event.part] + event.number, (select clock_timestamp()), event.id, event.version,
      event.family, event.stream, event.type, event.payload, event.metadata
    from json_to_recordset(new_events) as event (
      part int, number int, id uuid, version smallint,
      family text, stream text, type text, payload jsonb, metadata jsonb
    )
    where starts[event.part] is not null
    returning position, recorded_at
  )
  select array_agg(position), coalesce(min(recorded_at), clock_timestamp()) into positions, recorded from inserted;
  done := set_config('refold.appending', '', true);
  -- The commit waits for other commits that notify, and no other append is delayed by that. The short limit of a joined append would roll back here
  -- wherever commits are slow, and its positions would be lost.
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', greatest(lock_timeout_ms, 5000)::text, true);
  end if;
  -- An inline version was left between entering and drawing the positions: the caller enters again.
  if folding <> '' and folding::bigint <> pg_sequence_last_value('refold.inline_leaves') then
    perform refold.refuse_left();
  end if;

  if positions is not null then
    done := pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $function$;

CREATE OR REPLACE FUNCTION refold.begin_rule()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update refold.inline_versions
  set rule = case status when 'live' then 'in force' else 'declared' end
  where name = new.name and version = new.version and rule = 'pending';
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.check_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
AS $function$
declare
  unchecked text[] := current_setting('refold.unchecked')::text[];
  epoch bigint;
begin
  if unchecked <> '{}' then
    epoch := pg_current_xact_id()::text::bigint >> 32 << 32;
    unchecked := array(
      select distinct event.family || '.' || event.type
      from refold.events as event
      where event.position > current_setting('refold.inserting_after')::bigint
        and event.family || '.' || event.type = any (unchecked)
        and pg_xact_status((epoch | event.xmin::text::bigint)::text::xid8) = 'in progress'
    );
    if unchecked <> '{}' then
      perform refold.refuse_unchecked(unchecked);
    end if;
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.checked_anchor(anchor text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select regexp_replace(anchor, '^(([^.]*\.){7}).*$', '\1' || refold.server_start())
$function$;

CREATE OR REPLACE FUNCTION refold.checkpoint_anchor(checkpoint bigint)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select checkpoint || '.' || refold.anchor(checkpoint)
$function$;

CREATE OR REPLACE FUNCTION refold.claim_append_keys(keys text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  results jsonb;
begin
  loop
    insert into refold.append_keys (key)
    select distinct key
    from unnest(keys) key
    where key is not null
    order by key
    on conflict do nothing;

    select coalesce(jsonb_object_agg(key, result) filter (where result is not null), '{}')
    into results
    from refold.append_keys
    where key = any (keys)
    having count(*) = (select count(distinct key) from unnest(keys) key);
    exit when found; -- otherwise a key was deleted in between
  end loop;
  return results;
end $function$;

CREATE OR REPLACE FUNCTION refold.correlated(correlation text, after bigint, up_to bigint, newest boolean, page_size integer)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_indexscan TO 'off'
AS $function$
begin
  return query
  select position
  from refold.events
  where metadata ->> 'correlationId' = correlation
    and position + 0 > after
    and position + 0 <= up_to
  order by case when newest then -position else position end
  limit page_size;
end $function$;

CREATE OR REPLACE FUNCTION refold.count_leave()
 RETURNS bigint
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
AS $function$
  select nextval('refold.inline_leaves')
$function$;

CREATE OR REPLACE FUNCTION refold.decide_appends(versions bigint[], keys text[], earlier jsonb, part_appends integer[], part_streams integer[], part_expected bigint[], part_sizes integer[], OUT starts bigint[], OUT verdicts integer[], OUT actuals bigint[])
 RETURNS record
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
  appends   constant int := part_appends[cardinality(part_appends)];
  used_keys text[] := '{}';
  part      int := 1;
  first     int;
  verdict   int;
  actual    bigint;
begin
  starts := array_fill(null::bigint, array[cardinality(part_appends)]);
  verdicts := array_fill(0, array[appends]);
  actuals := array_fill(null::bigint, array[appends]);
  for append in 1 .. appends loop
    first := part;
    verdict := 0;
    if keys[append] is not null and (earlier ? keys[append] or keys[append] = any (used_keys)) then
      verdict := -1;
    end if;
    while part_appends[part] = append loop
      actual := versions[part_streams[part]];
      if verdict = 0 and not refold.version_fits(part_expected[part], actual) then
        verdict := part;
        actuals[append] := actual;
      end if;
      part := part + 1;
    end loop;
    if verdict = 0 then
      if keys[append] is not null then
        used_keys := used_keys || keys[append];
      end if;
      for p in first .. part - 1 loop
        starts[p] := versions[part_streams[p]];
        versions[part_streams[p]] := starts[p] + part_sizes[p];
      end loop;
    end if;
    verdicts[append] := verdict;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION refold.enter_inline(of_families text[], names text[], versions integer[], whole_keys bigint[], whole boolean[], row_owners integer[], row_keys bigint[], lock_timeout_ms integer)
 RETURNS text[]
 LANGUAGE plpgsql
 SET jit TO 'off'
AS $function$
declare
  tables text[] := array_fill(null::text, array[cardinality(names)]);
  leaves bigint;
  own_leave bigint;
  leaving bigint[] := '{}';
  quiet boolean;
  entry record;
  number int;
  numbers int[] := '{1}';
  some_live boolean := false;
  some_unchecked boolean := false;
  checked text[];
  unchecked text[] := '{}';
  done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform refold.refuse_isolation();
  end if;
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true);
  end if;
  -- The gate, shared: no version becomes live until this transaction ends.
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  leaves := pg_sequence_last_value('refold.inline_leaves');
  if leaves is null then
    raise exception 'permission denied for sequence inline_leaves' using errcode = 'insufficient_privilege';
  end if;
  quiet := coalesce(leaves::text = current_setting('refold.leaves_over', true), false);
  if not quiet then
    leaving := refold.inline_leaving();
    quiet := leaving = '{}' and not exists (select from refold.inline_departures);
    if quiet then
      done := set_config('refold.leaves_over', leaves::text, false);
    end if;
  end if;
  for entry in
    select name, version, lock_key, families && of_families as concerned, status = 'live' as live, rule
    from refold.inline_versions
    where status = 'live' or rule is not null
    order by lock_key
  loop
    number := array_position(names, entry.name);
    while versions[number] <> entry.version loop
      number := array_position(names, entry.name, number + 1);
    end loop;
    if not entry.live or (not quiet and not refold.is_live(entry.name, entry.version)) then
      null; -- appends don't fold into it
    elsif (number is null and entry.concerned) or (number <= cardinality(whole) and refold.inline_leave_key(entry.lock_key) = any (leaving)) then
      -- With a rule in force, it leaves only if another version checks the append; see below.
      if entry.rule is distinct from 'in force' then
        own_leave := refold.announce_leave(entry.name, entry.version, number is null);
        -- If another announcement came in between, refold.append notices.
        if own_leave = leaves + 1 then
          leaves := own_leave;
        end if;
      end if;
    elsif number <= cardinality(whole) then
      -- The version lock, shared. Whether the version is still live is read after it is held.
      done := pg_advisory_xact_lock_shared(entry.lock_key);
      tables[number] := (
        select table_name
        from refold.projections
        where name = entry.name
          and version = entry.version
          and exists (
            select from refold.inline_versions where name = entry.name and version = entry.version and status = 'live'
          )
      );
      if not quiet and not refold.is_live(entry.name, entry.version) then
        tables[number] := null;
      end if;
      some_live := some_live or tables[number] is not null;
    end if;
    if entry.rule is not null and entry.rule <> 'pending' and entry.concerned and tables[number] is null then
      some_unchecked := some_unchecked or number <= cardinality(whole) or (number is null and entry.rule = 'in force');
    end if;
  end loop;
  if some_unchecked then
    for entry in
      select name, version, types, unique_columns, rule
      from refold.inline_versions
      where rule in ('declared', 'in force')
        and families && of_families
      order by lock_key
    loop
      number := (
        select known.number
        from unnest(names, versions) with ordinality as known (name, version, number)
        where known.name = entry.name and known.version = entry.version
      );
      if number > cardinality(whole) or tables[number] is not null or (number is null and entry.rule = 'declared') then
        continue;
      end if;
      checked := array(
        select unnest(other.types)
        from unnest(names, versions, tables) as folded (name, version, table_name)
        join refold.inline_versions as other using (name, version)
        where folded.table_name is not null
          and other.name = entry.name
          and other.unique_columns @> entry.unique_columns
      );
      unchecked := unchecked || array(select unnest(entry.types) except select unnest(checked));
      if entry.types && checked then
        own_leave := refold.announce_leave(entry.name, entry.version, number is null);
        if own_leave = leaves + 1 then
          leaves := own_leave;
        end if;
      end if;
    end loop;
  end if;
  if some_live then
    -- The rows locks in the order of their keys, then the row locks in the order of theirs: two appends never wait for each other in a circle.
    if cardinality(whole) > 1 then
      numbers := array(select of_rows.number from unnest(whole_keys) with ordinality of_rows (key, number) order by key);
    end if;
    foreach number in array numbers loop
      if tables[number] is null then
        continue;
      elsif whole[number] then
        done := pg_advisory_xact_lock(whole_keys[number]);
      else
        done := pg_advisory_xact_lock_shared(whole_keys[number]);
      end if;
    end loop;
    for touched in 1 .. cardinality(row_keys) loop
      if tables[row_owners[touched]] is not null then
        done := pg_advisory_xact_lock(row_keys[touched]);
      end if;
    end loop;
  end if;
  done := set_config('refold.entered', of_families::text, true);
  done := set_config('refold.folding', case when some_live then leaves::text else '' end, true);
  done := set_config('refold.unchecked', unchecked::text, true);
  return tables;
end $function$;

CREATE OR REPLACE FUNCTION refold.held_among(locks jsonb, wait_ms integer)
 RETURNS integer[]
 LANGUAGE plpgsql
AS $function$
declare
  held int[] := '{}';
  lock jsonb;
  number int;
begin
  perform set_config('lock_timeout', wait_ms::text, true);
  for lock, number in select value, ordinality from jsonb_array_elements(locks) with ordinality loop
    begin
      if lock ? 'stream' then
        insert into refold.streams (family, stream_id, version)
        values (lock ->> 'family', lock ->> 'stream', 0)
        on conflict (family, stream_id) do update set version = 0 where false; -- locks the row and leaves it as it is
      elsif lock ? 'key' then
        insert into refold.append_keys (key) values (lock ->> 'key') on conflict do nothing;
      elsif lock ? 'table' then
        execute format('lock table %I.%I in row exclusive mode', lock ->> 'schema', lock ->> 'table');
      elsif (lock -> 'alone')::boolean then
        perform pg_advisory_xact_lock((lock ->> 'advisory')::bigint);
      else
        perform pg_advisory_xact_lock_shared((lock ->> 'advisory')::bigint);
      end if;
      raise exception using errcode = 'RF002'; -- rolls back to the beginning of this block
    exception
      when sqlstate 'RF002' then null;
      when lock_not_available or deadlock_detected then held := held || number;
    end;
  end loop;
  return held;
end $function$;

CREATE OR REPLACE FUNCTION refold.horizon()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  ceiling bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  lowest_tag bigint;
begin
  select min(tag) into lowest_tag from refold.tags;
  return least(ceiling, lowest_tag);
end $function$;

CREATE OR REPLACE FUNCTION refold.inherit_rule()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update refold.inline_versions
  set rule = 'in force'
  where name = old.name and unique_columns @> old.unique_columns;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.inline_gate()
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select 21070::bigint << 48
$function$;

CREATE OR REPLACE FUNCTION refold.inline_leave_key(lock_key bigint)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select (21074::bigint << 48) | (lock_key & ((1::bigint << 48) - 1))
$function$;

CREATE OR REPLACE FUNCTION refold.inline_leaving()
 RETURNS bigint[]
 LANGUAGE sql
AS $function$
  select coalesce(array_agg(key), '{}')
  from refold.advisory_locks
  where key >> 48 = 21074
    and granted
    and pid is distinct from pg_backend_pid() -- a prepared transaction has no pid
$function$;

CREATE OR REPLACE FUNCTION refold.is_live(of_name text, of_version integer)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  select
    exists (select from refold.inline_versions where name = of_name and version = of_version and status = 'live')
    and not exists (select from refold.inline_departures where name = of_name and version = of_version)
$function$;

CREATE OR REPLACE FUNCTION refold.last_position()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
AS $function$
begin
  return (select event.position from refold.events as event order by event.position desc limit 1);
end $function$;

CREATE OR REPLACE FUNCTION refold.lost_history(checkpoint bigint, anchor text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select case
    when checkpoint > coalesce(pg_sequence_last_value('refold.events_position_seq'), 0) then 'beyond'
    when split_part(anchor, '.', 1) is distinct from checkpoint::text then null
    when split_part(anchor, '.', 2) is distinct from refold.anchor(checkpoint) then 'other' -- '0.lost': nothing is known, whatever the log holds
    when split_part(anchor, '.', 8) in ('', refold.server_start()::text) then null
    when nullif(split_part(anchor, '.', 4), '')::bigint is distinct from (
      select count(*)
      from refold.events as event
      where event.position > nullif(split_part(anchor, '.', 3), '')::bigint and event.position <= checkpoint
    ) then 'other'
  end
$function$;

CREATE OR REPLACE FUNCTION refold.next_checkpoint_anchor(previous text, from_checkpoint bigint, to_checkpoint bigint)
 RETURNS text
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  parts text[] := string_to_array(previous, '.');
  continues boolean := coalesce(cardinality(parts) = 8 and parts[1] = from_checkpoint::text, false);
  settled bigint := case when continues then parts[3]::bigint else from_checkpoint end;
  counted bigint := case when continues then parts[4]::bigint else 0 end;
  mark bigint := case when continues then parts[5]::bigint end;
  since_mark bigint := case when continues then parts[6]::bigint end;
  ceiling bigint := case when continues then parts[7]::bigint end;
  drawn bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  added bigint;
  last_event bigint;
  anchor text;
begin
  if to_checkpoint = 0 or to_checkpoint > drawn then
    return null;
  end if;
  added := (select count(*) from refold.events as event where event.position > from_checkpoint and event.position <= to_checkpoint);
  -- The same as refold.anchor, without the cost of its setting.
  select event.position, right(event.id::text, 8)
  into last_event, anchor
  from refold.events as event
  where event.position <= to_checkpoint
  order by event.position desc
  limit 1;
  counted := counted + added;
  since_mark := since_mark + added;
  if last_event > ceiling then
    settled := mark;
    counted := since_mark;
    mark := null;
  end if;
  if mark is null or drawn = ceiling then
    mark := to_checkpoint;
    since_mark := 0;
    ceiling := drawn;
  end if;
  return concat_ws('.', to_checkpoint, coalesce(anchor, '00000000'), settled, counted, mark, since_mark, ceiling, refold.server_start());
end $function$;

CREATE OR REPLACE FUNCTION refold.note_inline_status()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.status <> old.status then
    new.changed_at := clock_timestamp();
  end if;
  if new.status = 'live' and new.rule = 'declared' then
    new.rule := 'in force';
  end if;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION refold.pass_inline(of_families text[])
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
  entry record;
  done text;
  unchecked text[] := '{}';
begin
  -- The gate, shared, to the end of the transaction: no version becomes live meanwhile.
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  -- The usual case: no version has ever been live. Without the privilege, the sequence seems to have no value, or before PostgreSQL 17 reading it
  -- fails.
  if has_sequence_privilege('refold.inline_lives'::regclass, 'usage, select') then
    if pg_sequence_last_value('refold.inline_lives') is null then
      return unchecked;
    end if;
  end if;
  -- The snapshot of another isolation level may be older than what is live.
  if current_setting('transaction_isolation') <> 'read committed' and refold.was_ever_live() then
    perform refold.refuse_isolation();
  end if;
  for entry in
    select name, version, status, rule, types
    from refold.inline_versions
    where (status = 'live' or rule is not null)
      and (of_families is null or families && of_families)
    order by lock_key
  loop
    if entry.rule = 'in force' then
      unchecked := unchecked || entry.types;
    elsif entry.status = 'live' then
      done := refold.announce_leave(entry.name, entry.version, true);
    end if;
  end loop;
  return unchecked;
end $function$;

CREATE OR REPLACE FUNCTION refold.position_before(moment timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
declare
  low bigint := 0;
  high bigint := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
  middle bigint;
  found_at bigint;
  found_time timestamptz;
begin
  while low < high loop
    middle := low + (high - low + 1) / 2;
    select position, recorded_at
    into found_at, found_time
    from refold.events
    where position between middle and high
    order by position
    limit 1;
    if found_at is null or found_time >= moment then
      high := middle - 1;
    else
      low := found_at;
    end if;
  end loop;
  return low;
end $function$;

CREATE OR REPLACE FUNCTION refold.raise_change_floor(of_name text, of_version integer, up_to bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into refold.change_floors as floor (name, version, position)
  values (of_name, of_version, up_to)
  on conflict (name, version) do update
  set position = greatest(floor.position, excluded.position)
$function$;

CREATE OR REPLACE FUNCTION refold.raise_floors_past_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform refold.raise_change_floor(name, version, up_to)
  from (
    select name, version, max(checkpoint) as up_to
    from deleted_changes
    group by name, version
    order by name, version
  ) ordered;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.raise_floors_to_checkpoints()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform refold.raise_change_floor(name, version, up_to)
  from (
    select name, version, max(refold.reached(name, version, checkpoint)) as up_to
    from refold.processors
    where tg_level = 'STATEMENT' or (name = new.name and version = new.version)
    group by name, version
    order by name, version
  ) ordered;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.reached(of_name text, of_version integer, checkpoint bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  select case
    when exists (
      select
      from refold.inline_versions
      where name = of_name and version = of_version and status = 'live'
    )
    then greatest(
      checkpoint,
      coalesce(
        (select min(position) from refold.inline_departures where name = of_name and version = of_version),
        pg_sequence_last_value('refold.events_position_seq'),
        0
      )
    )
    else checkpoint
  end
$function$;

CREATE OR REPLACE FUNCTION refold.read_events(after bigint, up_to bigint, wanted text[], page_size integer, anchor text DEFAULT NULL::text)
 RETURNS SETOF refold.events
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET work_mem TO '32MB'
AS $function$
begin
  if anchor is not null and anchor is distinct from refold.anchor(up_to) then
    raise exception 'The log does not hold what was known up to position %.', up_to using errcode = 'RF001';
  end if;
  return query
  select *
  from refold.events
  where position > after
    and position <= up_to
    and family || '.' || type = any (wanted)
  order by position
  limit page_size;
end $function$;

CREATE OR REPLACE FUNCTION refold.read_head(known bigint, OUT horizon bigint, OUT anchor text, OUT known_anchor text, OUT server_start bigint)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
begin
  horizon := refold.horizon();
  server_start := refold.server_start();
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    anchor := refold.anchor(horizon);
    known_anchor := case when known = horizon then anchor else refold.anchor(known) end;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION refold.read_tail(after bigint, wanted text[], page_size integer, known bigint DEFAULT NULL::bigint)
 RETURNS TABLE(horizon bigint, up_to bigint, "position" bigint, stream_position bigint, recorded_at timestamp with time zone, id uuid, payload_version smallint, family text, stream_id text, type text, payload jsonb, metadata jsonb, anchor text, known_anchor text, server_start bigint)
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
#variable_conflict use_column
declare
  new_snapshots boolean := current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
  found_any boolean := false;
begin
  horizon := refold.horizon();
  server_start := refold.server_start();
  up_to := after;
  if new_snapshots then
    -- The same as refold.anchor, without the cost of its setting.
    anchor := case when horizon > 0 then coalesce(
      (select right(event.id::text, 8) from refold.events as event where event.position <= horizon order by event.position desc limit 1),
      '00000000'
    ) end;
    known_anchor := case when known = horizon then anchor else refold.anchor(known) end;
  end if;
  if new_snapshots and horizon > after then
    up_to := horizon;
    return query
    select
      horizon, up_to, event.position, event.stream_position, event.recorded_at, event.id, event.payload_version,
      event.family, event.stream_id, event.type, event.payload, event.metadata, anchor, known_anchor, server_start
    from refold.events as event
    where event.position > after
      and event.position <= up_to
      and event.family || '.' || event.type = any (wanted)
    order by event.position
    limit page_size;
    found_any := found;
  end if;
  if not found_any then
    return next;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION refold.recent_changes(of_name text, of_version integer, seen bigint[], max_batches integer, known bigint DEFAULT NULL::bigint, complete bigint DEFAULT NULL::bigint)
 RETURNS TABLE(checkpoints json, read_at double precision, live boolean, forgotten bigint, changed_at bigint, upserted jsonb, deleted jsonb, traceparent text, anchor text, known_anchor text, server_start bigint)
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  with reached as (
    select
      json_agg(processor.reached::text order by processor.partition) as checkpoints,
      min(processor.reached) as least,
      exists (
        select from refold.inline_versions as inline
        where inline.name = of_name and inline.version = of_version and inline.status = 'live'
      ) as live,
      (
        select floor.position
        from refold.change_floors as floor
        where floor.name = of_name and floor.version = of_version
      ) as forgotten
    from (
      select partition, refold.reached(name, version, checkpoint) as reached
      from refold.processors
      where name = of_name and version = of_version
    ) as processor
  ), anchored as (
    select
      reached.*,
      refold.anchor(case when reached.live then least(complete, reached.least) else reached.least end) as anchor,
      refold.anchor(known) as known_anchor
    from reached
  )
  select
    anchored.checkpoints,
    (extract(epoch from now()) * 1000)::float8,
    anchored.live,
    anchored.forgotten,
    change.checkpoint,
    change.upserted,
    change.deleted,
    change.traceparent,
    anchored.anchor,
    anchored.known_anchor,
    refold.server_start()
  from anchored
  left join lateral (
    select of_partition.*
    from unnest(seen) with ordinality as seen_of (checkpoint, number)
    cross join lateral (
      select change.checkpoint, change.upserted, change.deleted, change.traceparent
      from refold.changes as change
      where change.name = of_name
        and change.version = of_version
        and change.partition = seen_of.number - 1
        and change.checkpoint > seen_of.checkpoint
      order by change.checkpoint
      limit max_batches
    ) as of_partition
  ) as change on true;
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'Events are immutable: % on refold.events is refused.', tg_op
    using errcode = 'restrict_violation', hint = 'Append an event that corrects the earlier one.';
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_isolation()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'Where there are inline projections, events are appended in transactions that are READ COMMITTED, found %.', upper(current_setting('transaction_isolation'))
    using errcode = 'invalid_transaction_state', hint = 'Begin the transaction without another isolation level.';
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_left()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'An inline version has left the appends since this one entered it.'
    using errcode = 'serialization_failure', hint = 'Append again.';
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_unchecked(refused text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  found record;
begin
  select name || '@' || version as id, status, refold.is_live(name, version) as live, changed_at
  into found
  from refold.inline_versions
  where rule is not null and types && refused
  order by refold.is_live(name, version), rule = 'in force' desc, name, version desc
  limit 1;
  raise exception '%', case
    when found.live then format(
      'The unique values of %s are checked as events are appended, and this writer can''t do that, because it doesn''t declare the version. Nothing was written.',
      found.id
    )
    else format(
      'The unique values of %s can''t be checked at the moment: since %s its rows don''t commit with appends. Nothing was written.',
      found.id, to_char(found.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    )
  end
    using
      errcode = 'RF003',
      detail = to_json(refused)::text,
      hint = case
        when found.live then format('Append these events in a process that declares %s; an older program needs the release that does. Event types: %s.', found.id, array_to_string(refused, ', '))
        else format('Append again in a moment. If this persists, `refold status` says what %s waits for. Event types: %s.', found.id, array_to_string(refused, ', '))
      end;
end $function$;

CREATE OR REPLACE FUNCTION refold.refuse_value(value anyelement, problem text)
 RETURNS anyelement
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '%, found %.', problem, value using errcode = 'data_exception';
end $function$;

CREATE OR REPLACE FUNCTION refold.server_start()
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint
$function$;

CREATE OR REPLACE FUNCTION refold.settle_inline(of_name text, of_version integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  key bigint;
  folded bigint;
  passed boolean;
begin
  select lock_key into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return true;
  end if;
  -- Without a departure, appends still enter: the lock would not become free, and they would wait for this transaction.
  if refold.is_live(of_name, of_version) then
    return false;
  end if;
  -- The version lock, exclusive: no append that folds is running. The leave lock, exclusive: no announcement is undecided. Both only if they are
  -- free, because a waiting exclusive lock would make every later append wait behind it.
  if not pg_try_advisory_xact_lock(key) or not pg_try_advisory_xact_lock(refold.inline_leave_key(key)) then
    return false;
  end if;
  with settled as (
    delete from refold.inline_departures
    where name = of_name and version = of_version
    returning position, passing
  )
  select min(position), bool_or(passing) into folded, passed from settled;
  if folded is null then
    return true; -- another transaction has settled it meanwhile
  end if;
  update refold.inline_versions
  -- The version joins again five seconds after that. One second is enough for an operator's step to begin.
  set status = 'building', passed_at = clock_timestamp() - case when passed then interval '0' else interval '4 seconds' end
  where name = of_name and version = of_version;
  update refold.processors
  set checkpoint = folded, epoch = epoch + 1, status = 'idle', error = null, updated_at = now()
  where name = of_name and version = of_version;
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return true;
end $function$;

CREATE OR REPLACE FUNCTION refold.store_append_results(families text[], stream_ids text[], keys text[], part_appends integer[], part_streams integer[], part_sizes integer[], starts bigint[], positions bigint[], recorded timestamp with time zone, inputs text[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
begin
  update refold.append_keys
  set result = jsonb_build_object(
    'recordedAt', recorded,
    'streams', written.streams,
    'positions', to_jsonb(positions[written.first : written.last])
  ) || case
    when written.input is null then '{}'
    when written.input like 'step:%' and written.key like '%:%/________-____-____-____-____________/%'
      then jsonb_build_object('step', written.input)
    else jsonb_build_object('input', written.input)
  end
  from (
    select
      keys[append] as key,
      inputs[append] as input,
      min(last - size) + 1 as first,
      max(last) as last,
      jsonb_agg(jsonb_build_array(families[stream], stream_ids[stream], start + size) order by number) as streams
    from (
      select *, sum(size) over (order by number) as last
      from unnest(part_appends, part_streams, part_sizes, starts)
        with ordinality part (append, stream, size, start, number)
      where start is not null
    ) part
    group by append
  ) written
  where append_keys.key = written.key;

  delete from refold.append_keys where key = any (keys) and result is null;
end $function$;

CREATE OR REPLACE FUNCTION refold.tag_writer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  known bigint;
  last bigint;
  done text; -- assigned instead of `perform`, which runs a statement and takes ten times as long
begin
  -- An insert without refold.append: nobody knows the families of its rows yet, so live inline versions of all families stop folding. What may
  -- not be among the rows is checked by refold.check_insert when they are there.
  if coalesce(current_setting('refold.appending', true), '') = '' then
    done := set_config('refold.unchecked', refold.pass_inline(null)::text, true);
    done := set_config('refold.inserting_after', coalesce(pg_sequence_last_value('refold.events_position_seq'), 0)::text, true);
  end if;
  if coalesce(current_setting('refold.tag', true), '') = '' then
    -- Read before the sequence: other writers draw from it meanwhile.
    known := refold.last_position();
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    if known > last then
      raise exception 'the sequence of refold.events stands at %, and the log has events up to %', last, known using errcode = 'RF004';
    end if;
    done := pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    done := set_config('refold.tag', last::text, true);
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION refold.take_back(families text[], stream_ids text[], stream_sizes integer[], part_streams integer[], part_sizes integer[], starts bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
begin
  update refold.streams
  set version = streams.version - refused.size
  from (
    select part.stream, sum(part.size) as size
    from unnest(part_streams, part_sizes, starts) part (stream, size, start)
    where part.start is null
    group by part.stream
  ) refused
  where streams.family = families[refused.stream]
    and streams.stream_id = stream_ids[refused.stream];

  delete from refold.streams
  using unnest(families, stream_ids) wanted (family, stream_id)
  where streams.family = wanted.family
    and streams.stream_id = wanted.stream_id
    and streams.version = 0;
end $function$;

CREATE OR REPLACE FUNCTION refold.unread(after bigint, wanted text[], bound integer, OUT events bigint, OUT exact boolean, OUT oldest timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
begin
  select
    count(*) filter (where next.is_wanted and next.number <= bound),
    count(*) <= bound,
    coalesce(min(next.recorded_at) filter (where next.is_wanted), max(next.recorded_at) filter (where next.number > bound))
  into events, exact, oldest
  from (
    select recorded_at, family || '.' || type = any (wanted) as is_wanted, row_number() over (order by position) as number
    from refold.events
    where position > after
    order by position
    limit bound + 1
  ) next;
end $function$;

CREATE OR REPLACE FUNCTION refold.version_fits(expected bigint, actual bigint)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select expected = actual or expected = -1 or (expected = -2 and actual > 0)
$function$;

CREATE OR REPLACE FUNCTION refold.was_ever_live()
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
AS $function$
  select pg_sequence_last_value('refold.inline_lives') is not null
$function$;

sequence refold.dead_letters_id_seq as bigint start 1 increment 1 cache 1;

sequence refold.events_position_seq as bigint start 1 increment 1 cache 1;

sequence refold.inline_leaves as bigint start 1 increment 1 cache 1;

sequence refold.inline_lives as bigint start 1 increment 1 cache 1;

sequence refold.reactor_operations_id_seq as bigint start 1 increment 1 cache 1;

sequence refold.table_snapshots_id_seq as bigint start 1 increment 1 cache 1;

sequence refold.transitions_id_seq as bigint start 1 increment 1 cache 1;
