import { sql } from 'kysely';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Partition } from '../../projections/projection/partition.ts';
import type { CanaryRule, VersionState } from '../../projections/projection/version-map.ts';
import { readFloors } from '../processors/partitions.ts';
import { type ColumnsOf, type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';
import type { ProcessorError, ProcessorRetry, StoredFloors } from '../statements/stored-json.ts';
import { type InlineStatus, inlineStatus, type UncheckedRule, uncheckedRule } from './inline-versions.ts';
import { type Pause, pauseSql, type StoredPause } from './pauses.ts';

/** A version in the registry, with its processors. */
export interface RegisteredVersion
  extends ColumnsOf<
    'refold.projections',
    | 'name'
    | 'version'
    | 'state'
    | 'table_name'
    | 'generation'
    | 'table_fingerprint'
    | 'code_fingerprint'
    | 'held_reason'
    | 'held_by'
    | 'state_changed_at'
  > {
  /** The position after which it begins: 0, unless its table is partial. */
  readonly startsAfter: GlobalPosition;
  /** Whether appends fold into it; null for an async version. */
  readonly inline: InlineStatus | null;
  /** Its unique values, if they are a rule for appends and nothing checks them at the moment. */
  readonly unchecked: UncheckedRule | null;
  /** The clients that it serves while it is ready; null if there is no canary. */
  readonly canary: CanaryRule | null;
  /** The running comparison with live queries; null if there is none. */
  readonly shadow: { readonly oneOf: number; readonly startedAt: string } | null;
  /** Who paused it, and why; null if it is not paused. */
  readonly paused: Pause | null;
  /** The lowest checkpoint of the partitions. For a live inline version the end of the log, because every committed event is folded. */
  readonly checkpoint: GlobalPosition;
  /** The owners of all partitions, separated by commas. */
  readonly owner: string | null;
  /** `stopped` if one of its partitions has stopped, else `running` if one is running. */
  readonly status: ProcessorStatus;
  /** The error of the first stopped partition. */
  readonly error: ProcessorError | null;
  readonly partitions: readonly RegisteredPartition[];
  readonly eventsFolded: bigint;
  /** The number of events that `onError: 'skip'` left out. */
  readonly eventsSkipped: bigint;
  /** How often its processors have tried an event again before its policy was applied. */
  readonly retries: bigint;
  /** The event that a running processor tries again now; the first partition's. */
  readonly retrying: ProcessorRetry | null;
  readonly startedAt: string | null;
  readonly updatedAt: string;
}

export type ProcessorStatus = TableRow<'refold.processors'>['status'];

/** The processor of one partition. */
export interface RegisteredPartition extends Partition, ColumnsOf<'refold.processors', 'owner' | 'status' | 'error'> {
  readonly checkpoint: GlobalPosition;
}

interface StoredPartition extends Omit<RegisteredPartition, 'checkpoint' | 'floors'> {
  readonly checkpoint: string;
  readonly floors: StoredFloors | null;
}

/** All versions, or those of one projection, ordered by name and version. */
export async function readRegistry(db: Queryable, name?: string): Promise<RegisteredVersion[]> {
  const rows = await db.query<RegistryRow>({
    name: name === undefined ? 'read registry' : 'read registry of a projection',
    // The processors are grouped once: a subquery for each version costs a scan for each, if the planner takes the table for a small one.
    text: registryText(name === undefined ? '' : 'where name = $1'),
    values: name === undefined ? [] : [name],
  });
  return rows.map(registered);
}

/** A row of {@link registryText}. */
export type RegistryRow = Omit<RegisteredVersion, 'partitions'> & { readonly partitions: readonly StoredPartition[] };

export function registered(row: RegistryRow): RegisteredVersion {
  const partitions = row.partitions.map((one) => ({
    ...one,
    checkpoint: globalPosition(one.checkpoint),
    floors: readFloors(one.floors),
  }));
  return { ...row, partitions };
}

/** @param ofName a condition on the columns `name` of the versions and of their processors */
export function registryText(ofName: string): string {
  return `
  with together as (
    ${ofProcessors}
    from refold.processors
    ${ofName}
    group by name, version
  )
  select
    name,
    version,
    state,
    table_name as "tableName",
    generation,
    table_fingerprint as "tableFingerprint",
    code_fingerprint as "codeFingerprint",
    held_reason as "heldReason",
    held_by as "heldBy",
    coalesce((definition ->> 'startAfter')::bigint, 0) as "startsAfter",
    state_changed_at as "stateChangedAt",
    ${pauseSql} as paused,
    case when inline.name is not null then ${inlineStatus('inline')} end as inline,
    ${uncheckedRule('inline')} as unchecked,
    case
      when canary.name is not null then json_build_object(
        'percent', percent,
        'header', case when header is not null then json_build_object('name', header, 'value', header_value) end
      )
    end as canary,
    case when shadow.name is not null then json_build_object('oneOf', one_of, 'startedAt', shadow.started_at) end as shadow,
    case
      when inline.name is not null then refold.reached(name, version, together.checkpoint)
      else together.checkpoint
    end as checkpoint,
    together.owner,
    together.status,
    together.error,
    "eventsFolded",
    "eventsSkipped",
    together.retries,
    together.retrying,
    "startedAt",
    together."updatedAt",
    together.partitions
  from refold.projections as projection
  join together using (name, version)
  left join refold.inline_versions as inline using (name, version)
  left join refold.canaries as canary using (name, version)
  left join (select * from refold.shadows where stopped_at is null) as shadow using (name, version)
  ${ofName}
  order by name, version`;
}

/** What the processors of a version tell together. */
const ofProcessors = `select
      name,
      version,
      min(checkpoint) as checkpoint,
      string_agg(distinct owner, ', ') as owner,
      case
        when bool_or(status = 'stopped') then 'stopped'
        when bool_or(status = 'running') then 'running'
        else 'idle'
      end as status,
      (array_agg(error order by partition) filter (where error is not null))[1] as error,
      sum(events_folded)::bigint as "eventsFolded",
      sum(events_skipped)::bigint as "eventsSkipped",
      sum(retries)::bigint as retries,
      (array_agg(retrying order by partition) filter (
        where status = 'running' and (retrying ->> 'position')::bigint > checkpoint
      ))[1] as retrying,
      min(started_at) as "startedAt",
      max(updated_at) as "updatedAt",
      json_agg(
        json_build_object(
          'partition', partition,
          'partitions', partitions,
          'checkpoint', checkpoint::text,
          'owner', owner,
          'status', status,
          'error', error,
          'floors', floors
        ) order by partition
      ) as partitions`;

/** One version; undefined if the registry does not contain it. */
export async function readVersion(
  db: Queryable,
  { name, version }: { readonly name: string; readonly version: number },
): Promise<RegisteredVersion | undefined> {
  return (await readRegistry(db, name)).find((entry) => entry.version === version);
}

export type LockedVersion = StoredPause &
  Pick<RegisteredVersion, 'state' | 'heldReason' | 'heldBy' | 'tableName' | 'generation' | 'tableFingerprint'>;

/**
 * A version's state, locked until the transaction ends. Not `for update`: a batch that inserts dead letters locks the version's key by its
 * foreign key. It would wait for this transaction, which may wait for the batch's checkpoint.
 */
export async function lockVersion(db: Queryable, name: string, version: number): Promise<LockedVersion | undefined> {
  const [locked] = await run(
    db,
    refoldTables
      .selectFrom('refold.projections')
      .select([
        'state',
        'held_reason as heldReason',
        'held_by as heldBy',
        'table_name as tableName',
        'generation',
        'table_fingerprint as tableFingerprint',
        'paused_at as pausedAt',
        'paused_by as pausedBy',
        'paused_reason as pausedReason',
      ])
      .where('name', '=', name)
      .where('version', '=', version)
      .forNoKeyUpdate(),
  );
  return locked;
}

/**
 * A version's state, locked against changes until the transaction ends. Batches share the lock. If another partition set the version to
 * `failed`, this returns `building`.
 */
export async function shareState(
  db: Queryable,
  { name, version }: { readonly name: string; readonly version: number },
): Promise<VersionState | undefined> {
  const rows = await db.query<ColumnsOf<'refold.projections', 'state'>>({
    name: 'share state',
    text: `
      select case when state = 'failed' then 'building' else state end as state
      from refold.projections
      where name = $1 and version = $2
      for share`,
    values: [name, version],
  });
  return rows[0]?.state;
}

/** A version that could become active. */
export interface ReadyVersion extends ColumnsOf<'refold.projections', 'name' | 'version' | 'held_reason' | 'held_by'> {
  /** For how long it has been ready, in seconds. */
  readonly seconds: number;
}

const readyVersions = refoldTables
  .selectFrom('refold.projections')
  .select(['name', 'version', 'held_reason as heldReason', 'held_by as heldBy'])
  .select(sql<number>`extract(epoch from now() - state_changed_at)::float8`.as('seconds'))
  .where('state', '=', 'ready')
  .where('paused_at', 'is', null);

export async function readReadyVersions(db: Queryable): Promise<ReadyVersion[]> {
  return run(db, readyVersions, 'read ready versions');
}

/** Serializes the transactions that register versions: an advisory lock, because there may be no row to lock yet. */
export async function lockRegistry(db: Queryable, key: bigint): Promise<void> {
  await run(db, sql`select pg_advisory_xact_lock(${key})`);
}
