// What the schema `refold` holds, as Kysely's builder types it. Written by scripts/dump-schema.ts.
import type { ColumnType, GeneratedAlways } from 'kysely';
import type { EventMetadata } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { LetterError, ProcessorError, ProcessorRetry, StoredBatch, StoredDefinition, StoredFloors } from './stored-json.ts';

/** A column with a default: an insert may omit it. */
type Generated<T> = T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S, I | undefined, U> : ColumnType<T, T | undefined, T>;

/** JSON is written as its text: the driver would write an array as an array of PostgreSQL. */
type Json<T> = ColumnType<T, string, string>;

type Int8 = ColumnType<bigint, bigint | number, bigint | number>;

type Texts = ColumnType<string[], readonly string[], readonly string[]>;

interface AdvisoryLocksTable {
  pid: number | null;
  virtualtransaction: string | null;
  mode: string | null;
  granted: boolean | null;
  key: Int8 | null;
}

interface AppendKeysTable {
  recorded_at: Generated<string>;
  key: string;
  result: Json<unknown> | null;
}

interface AwaitedEventsTable {
  reactor: string;
  key: string;
  type: string;
  position: GlobalPosition;
  event_id: string;
}

interface CanariesTable {
  name: string;
  version: number;
  percent: number;
  header: string | null;
  header_value: string | null;
  started_at: Generated<string>;
  operations: Generated<Int8>;
  errors: Generated<Int8>;
  other_operations: Generated<Int8>;
  other_errors: Generated<Int8>;
}

interface ChangeFloorsTable {
  name: string;
  version: number;
  position: GlobalPosition;
}

interface ChangesTable {
  name: string;
  version: number;
  partition: Generated<number>;
  checkpoint: GlobalPosition;
  upserted: Json<readonly RowKey[]>;
  deleted: Json<readonly RowKey[]>;
  traceparent: string | null;
  at: Generated<string>;
}

interface DeadLettersTable {
  id: GeneratedAlways<bigint>;
  name: string;
  version: number;
  table_name: string;
  key: Json<RowKey> | null;
  position: GlobalPosition;
  event_type: string;
  stream_id: string;
  error: Json<LetterError> | null;
  attempts: Generated<number>;
  at: Generated<string>;
}

interface DiscardsTable {
  name: string;
  version: number;
  position: GlobalPosition;
  key: Json<RowKey | null>;
  event_type: string;
  stream_id: string;
  actor: string;
  reason: string;
  at: Generated<string>;
  recalled_at: string | null;
}

interface EventsTable {
  position: GeneratedAlways<GlobalPosition>;
  stream_position: Int8;
  recorded_at: Generated<string>;
  id: Generated<string>;
  payload_version: Generated<number>;
  family: string;
  stream_id: string;
  type: string;
  payload: Json<unknown>;
  metadata: Generated<Json<EventMetadata>>;
}

interface FieldUsageTable {
  path: string;
  day: string;
  client: string;
  client_version: string;
  pins: string;
  operations: Int8;
  last_at: string;
}

interface ImportRangesTable {
  digest: Buffer;
  recorded_at: Generated<string>;
}

interface InlineDeparturesTable {
  name: string;
  version: number;
  position: GlobalPosition;
  passing: boolean;
}

interface InlineVersionsTable {
  name: string;
  version: number;
  status: Generated<'building' | 'live'>;
  families: Texts;
  lock_key: Int8;
  passed_at: string | null;
  types: Generated<Texts>;
  unique_columns: Texts | null;
  rule: 'pending' | 'declared' | 'in force' | null;
  changed_at: Generated<string>;
}

interface LagTable {
  name: string;
  version: number;
  partition: number;
  state: VersionState;
  checkpoint: GlobalPosition;
  head: Int8;
  positions: Int8;
  events: Int8;
  exact: boolean;
  seconds: number;
  paused: boolean;
  starts_after: Int8;
}

interface LeasesTable {
  kind: string;
  name: string;
  version: number;
  partition: Generated<number>;
  holder: string;
  expires_at: string;
}

interface MigrationsTable {
  name: string;
  timestamp: string;
}

interface MigrationsLockTable {
  id: string;
  is_locked: Generated<number>;
}

interface OldTablesTable {
  table_schema: string;
  table_name: string;
  drop_after: string;
}

interface PartitionCheckpointsTable {
  partition: number;
  table_name: string;
  checkpoint: GlobalPosition;
  anchor: string | null;
  epoch: Generated<Int8>;
  batch: Json<StoredBatch> | null;
  rewritten: Generated<boolean>;
  rewrites: Generated<Int8>;
}

interface ProcessesTable {
  id: string;
  name: string;
  role: 'gateway' | 'worker' | 'all' | null;
  versions: Generated<Texts>;
  declares: Texts;
  owns: Texts;
  keeps: Texts;
  started_at: Generated<string>;
  heartbeat_at: Generated<string>;
  payload_versions: Generated<Json<unknown>>;
  reactor_versions: Generated<Json<unknown>>;
  announcement_hash: GeneratedAlways<bigint>;
  code: Generated<Json<unknown>>;
  ownership: string | null;
  maintains: Generated<Texts>;
}

interface ProcessorsTable {
  name: string;
  version: number;
  partition: Generated<number>;
  partitions: Generated<number>;
  checkpoint: Generated<GlobalPosition>;
  anchor: string | null;
  floors: Json<StoredFloors> | null;
  epoch: Generated<Int8>;
  owner: string | null;
  status: Generated<'idle' | 'running' | 'stopped'>;
  error: Json<ProcessorError> | null;
  events_folded: Generated<Int8>;
  rows_written: Generated<Int8>;
  events_skipped: Generated<Int8>;
  retries: Generated<Int8>;
  retrying: Json<ProcessorRetry> | null;
  started_at: string | null;
  updated_at: Generated<string>;
  rewrites: Generated<Int8>;
}

interface ProjectionsTable {
  name: string;
  version: number;
  state: 'building' | 'ready' | 'active' | 'retired' | 'failed';
  held_by: 'operator' | 'breaking' | 'verification' | 'dead-letters' | 'partial' | null;
  held_reason: string | null;
  paused_at: string | null;
  paused_by: string | null;
  paused_reason: string | null;
  table_schema: string;
  table_name: string;
  table_fingerprint: string;
  code_fingerprint: string;
  definition: Json<StoredDefinition>;
  generation: Generated<number>;
  declared_at: Generated<string>;
  state_changed_at: Generated<string>;
}

interface ReactorAttemptsTable {
  reactor: string;
  epoch: Int8;
  process: string;
  events: Json<unknown>;
  begun_position: Generated<GlobalPosition>;
}

interface ReactorInstancesTable {
  reactor: string;
  position: GlobalPosition;
  event_id: string;
  event_type: string;
  stream_id: string;
  key: string;
  step: string;
  work: string;
  types: Texts;
  awaited_key: string;
  received: readonly GlobalPosition[];
  due: string | null;
  since: Generated<string>;
  woken: Generated<boolean>;
}

interface ReactorLettersTable {
  reactor: string;
  position: GlobalPosition;
  key: string;
  event_type: string;
  stream_id: string;
  error: Json<LetterError> | null;
  attempts: number;
  requested: 'retry' | 'discard' | null;
  at: Generated<string>;
}

interface ReactorOperationsTable {
  id: GeneratedAlways<bigint>;
  reactor: string;
  operation: 'declared' | 'paused' | 'resumed' | 'rewound' | 'skipped ahead' | 'letters retried' | 'letters discarded' | 'cancelled' | 'version begun' | 'version withdrawn' | 'forgotten';
  from_position: GlobalPosition | null;
  to_position: GlobalPosition;
  actor: string;
  reason: string;
  at: Generated<string>;
}

interface ReactorVersionsTable {
  reactor: string;
  version: number;
  from_position: GlobalPosition;
  begun_at: Generated<string>;
}

interface ReactorsTable {
  name: string;
  checkpoint: GlobalPosition;
  anchor: string | null;
  epoch: Generated<Int8>;
  owner: string | null;
  status: Generated<'idle' | 'running' | 'stopped'>;
  error: Json<ProcessorError> | null;
  paused: Generated<boolean>;
  generation: Generated<number>;
  events_handled: Generated<Int8>;
  events_skipped: Generated<Int8>;
  steps_kept_since: string | null;
  awaits: Generated<Texts>;
  declared_at: Generated<string>;
  started_at: string | null;
  updated_at: Generated<string>;
}

interface RebuildsTable {
  name: string;
  version: number;
  form: Generated<'beside' | 'in place'>;
  table_name: string;
  snapshot_id: Int8 | null;
  started_at_position: Generated<GlobalPosition>;
  checkpoint: Generated<GlobalPosition>;
  anchor: string | null;
  epoch: Generated<Int8>;
  owner: string | null;
  status: Generated<'idle' | 'running' | 'stopped'>;
  error: Json<ProcessorError> | null;
  events_folded: Generated<Int8>;
  rows_written: Generated<Int8>;
  state_before: VersionState | null;
  held_reason: string | null;
  dead_letters_accepted: Generated<boolean>;
  requested_by: string;
  reason: string;
  requested_at: Generated<string>;
  started_at: string | null;
  updated_at: Generated<string>;
}

interface RunsTable {
  name: string;
  version: number;
  partition: number;
  kind: 'processor' | 'rebuild' | 'reactor';
  started_at: string;
  ended_at: string;
  from_position: GlobalPosition;
  to_position: GlobalPosition;
  batches: Generated<number>;
  events: Int8;
  rows: Int8;
  busy_ms: Int8;
}

interface ShadowExamplesTable {
  name: string;
  version: number;
  operation: string;
  path: string;
  times: Generated<Int8>;
  older: string;
  newer: string;
  position: GlobalPosition | null;
  seen_at: Generated<string>;
}

interface ShadowsTable {
  name: string;
  version: number;
  one_of: number;
  started_at: Generated<string>;
  stopped_at: string | null;
  same: Generated<Int8>;
  different: Generated<Int8>;
  failed: Generated<Int8>;
  skipped: Generated<Int8>;
}

interface SkipsTable {
  name: string;
  version: number;
  table_name: string;
  position: GlobalPosition;
  key: Json<RowKey> | null;
  refused: boolean;
}

interface StallsTable {
  tag: Int8 | null;
  pid: number | null;
  application_name: string | null;
  state: string | null;
  seconds: number | null;
  query: string | null;
  role: string | null;
  client_address: string | null;
}

interface StreamSnapshotsTable {
  stream_position: Int8;
  position: GlobalPosition;
  taken_at: Generated<string>;
  family: string;
  stream_id: string;
  fingerprint: string;
  state: Json<unknown>;
}

interface StreamsTable {
  version: Int8;
  family: string;
  stream_id: string;
}

interface TableSnapshotsTable {
  id: GeneratedAlways<bigint>;
  name: string;
  version: number;
  table_schema: string;
  table_name: string;
  checkpoint: GlobalPosition;
  row_count: Int8;
  bytes: Int8;
  events_folded: Int8;
  lacks: Generated<Json<unknown>>;
  table_fingerprint: string;
  code_fingerprint: string;
  automatic: boolean;
  actor: string;
  reason: string;
  taken_at: Generated<string>;
  anchor: string | null;
}

interface TagsTable {
  pid: number | null;
  virtualtransaction: string | null;
  tag: Int8 | null;
}

interface ThroughputTable {
  name: string;
  version: number;
  partition: number;
  kind: 'processor' | 'rebuild' | 'reactor';
  events: Int8;
  rows: Int8;
  events_per_second: number;
  rows_per_second: number;
  positions_per_second: number;
  busy_share: number;
}

interface TransitionsTable {
  id: GeneratedAlways<bigint>;
  name: string;
  version: number;
  from_state: VersionState | null;
  to_state: VersionState;
  actor: string;
  reason: string;
  at: Generated<string>;
}

interface UsageClientsTable {
  day: string;
  client: string;
  client_version: string;
}

interface UsageRecordingTable {
  only_row: Generated<boolean>;
  since: Generated<string>;
}

interface VerificationsTable {
  name: string;
  version: number;
  kind: 'activation' | 'audit';
  round: Generated<Int8>;
  owner: string | null;
  busy_until: string | null;
  next_at: Generated<string>;
  ended_at: string | null;
  position: GlobalPosition | null;
  rows_compared: Int8 | null;
  differences: Int8 | null;
  total_rows_compared: Generated<Int8>;
  total_differences: Generated<Int8>;
  samples: Json<readonly unknown[]> | null;
  found_at: string | null;
}

/** The tables and views of the schema `refold`. */
export interface RefoldTables {
  'refold.advisory_locks': AdvisoryLocksTable;
  'refold.append_keys': AppendKeysTable;
  'refold.awaited_events': AwaitedEventsTable;
  'refold.canaries': CanariesTable;
  'refold.change_floors': ChangeFloorsTable;
  'refold.changes': ChangesTable;
  'refold.dead_letters': DeadLettersTable;
  'refold.discards': DiscardsTable;
  'refold.events': EventsTable;
  'refold.field_usage': FieldUsageTable;
  'refold.import_ranges': ImportRangesTable;
  'refold.inline_departures': InlineDeparturesTable;
  'refold.inline_versions': InlineVersionsTable;
  'refold.lag': LagTable;
  'refold.leases': LeasesTable;
  'refold.migrations': MigrationsTable;
  'refold.migrations_lock': MigrationsLockTable;
  'refold.old_tables': OldTablesTable;
  'refold.partition_checkpoints': PartitionCheckpointsTable;
  'refold.processes': ProcessesTable;
  'refold.processors': ProcessorsTable;
  'refold.projections': ProjectionsTable;
  'refold.reactor_attempts': ReactorAttemptsTable;
  'refold.reactor_instances': ReactorInstancesTable;
  'refold.reactor_letters': ReactorLettersTable;
  'refold.reactor_operations': ReactorOperationsTable;
  'refold.reactor_versions': ReactorVersionsTable;
  'refold.reactors': ReactorsTable;
  'refold.rebuilds': RebuildsTable;
  'refold.runs': RunsTable;
  'refold.shadow_examples': ShadowExamplesTable;
  'refold.shadows': ShadowsTable;
  'refold.skips': SkipsTable;
  'refold.stalls': StallsTable;
  'refold.stream_snapshots': StreamSnapshotsTable;
  'refold.streams': StreamsTable;
  'refold.table_snapshots': TableSnapshotsTable;
  'refold.tags': TagsTable;
  'refold.throughput': ThroughputTable;
  'refold.transitions': TransitionsTable;
  'refold.usage_clients': UsageClientsTable;
  'refold.usage_recording': UsageRecordingTable;
  'refold.verifications': VerificationsTable;
}
