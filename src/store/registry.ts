import type { GlobalPosition } from '../events/global-position.ts';
import type { VersionState } from '../projections/version-map.ts';
import type { Queryable } from './statement.ts';

/** Channel that tells every process that the registry changed. */
export const registryChannel = 'refold_registry';

/** A version as the registry holds it, with its processor. */
export interface RegisteredVersion {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
  readonly tableName: string;
  readonly generation: number;
  readonly tableFingerprint: string;
  readonly codeFingerprint: string;
  readonly heldReason: string | null;
  readonly stateChangedAt: string;
  readonly checkpoint: GlobalPosition;
  readonly owner: string | null;
  readonly status: 'idle' | 'running' | 'stopped';
  readonly error: {
    readonly message: string;
    readonly code?: string;
    readonly position?: string;
    readonly at: string;
  } | null;
  readonly eventsFolded: bigint;
  readonly startedAt: string | null;
  readonly updatedAt: string;
}

export async function readRegistry(db: Queryable): Promise<RegisteredVersion[]> {
  return db.query<RegisteredVersion>({
    name: 'read registry',
    text: `
      select
        name,
        version,
        state,
        table_name as "tableName",
        generation,
        table_fingerprint as "tableFingerprint",
        code_fingerprint as "codeFingerprint",
        held_reason as "heldReason",
        state_changed_at as "stateChangedAt",
        checkpoint,
        owner,
        status,
        error,
        events_folded as "eventsFolded",
        started_at as "startedAt",
        updated_at as "updatedAt"
      from refold.projections
      join refold.processors using (name, version)
      order by name, version`,
  });
}

export interface NewVersion {
  readonly name: string;
  readonly version: number;
  readonly tableSchema: string;
  readonly tableName: string;
  readonly tableFingerprint: string;
  readonly codeFingerprint: string;
  readonly definition: unknown;
}

/** Adds a version as `building`, with a processor before the first event. */
export async function insertVersion(db: Queryable, version: NewVersion): Promise<void> {
  await db.query({
    text: `
      with added as (
        insert into refold.projections
          (name, version, state, table_schema, table_name, table_fingerprint, code_fingerprint, definition)
        values ($1, $2, 'building', $3, $4, $5, $6, $7)
        returning name, version
      )
      insert into refold.processors (name, version)
      select name, version from added`,
    values: [
      version.name,
      version.version,
      version.tableSchema,
      version.tableName,
      version.tableFingerprint,
      version.codeFingerprint,
      JSON.stringify(version.definition),
    ],
  });
}

/** Puts a version back to its beginning, under new fingerprints; a running owner is fenced off. */
export async function resetVersion(db: Queryable, version: NewVersion): Promise<void> {
  await db.query({
    text: `
      with reset as (
        update refold.processors
        set checkpoint = 0, epoch = epoch + 1, status = 'idle', error = null, events_folded = 0, rows_written = 0, updated_at = now()
        where name = $1 and version = $2
      ), forgotten as (
        delete from refold.changes where name = $1 and version = $2
      )
      update refold.projections
      set table_fingerprint = $3, code_fingerprint = $4, definition = $5, table_name = $6, generation = 1
      where name = $1 and version = $2`,
    values: [
      version.name,
      version.version,
      version.tableFingerprint,
      version.codeFingerprint,
      JSON.stringify(version.definition),
      version.tableName,
    ],
  });
}

export type LockedVersion = Pick<RegisteredVersion, 'state' | 'heldReason' | 'tableName' | 'generation'>;

/** A version's state, locked until the transaction ends. */
export async function lockVersion(db: Queryable, name: string, version: number): Promise<LockedVersion | undefined> {
  const rows = await db.query<LockedVersion>({
    text: `
      select state, held_reason as "heldReason", table_name as "tableName", generation
      from refold.projections
      where name = $1 and version = $2
      for update`,
    values: [name, version],
  });
  return rows[0];
}

export interface Step {
  readonly name: string;
  readonly version: number;
  readonly from: VersionState | null;
  readonly to: VersionState;
  readonly actor: string;
  readonly reason: string;
  /** Why the version must not become active by itself; null lifts that. */
  readonly heldReason: string | null;
}

/** One step in the life of a version: the state, the audit log, and the notification of every process. */
export async function recordStep(db: Queryable, step: Step): Promise<void> {
  await db.query({
    text: `
      with changed as (
        update refold.projections
        set state = $4, held_reason = $7, state_changed_at = now()
        where name = $1 and version = $2
      ), logged as (
        insert into refold.transitions (name, version, from_state, to_state, actor, reason)
        values ($1, $2, $3, $4, $5, $6)
      )
      select pg_notify('${registryChannel}', $1::text || '@' || $2::text)`,
    values: [step.name, step.version, step.from, step.to, step.actor, step.reason, step.heldReason],
  });
}

/** The highest active version of a projection, with its table. */
export async function highestActive(
  db: Queryable,
  name: string,
): Promise<{ version: number; tableName: string } | undefined> {
  const rows = await db.query<{ version: number; tableName: string }>({
    text: `
      select version, table_name as "tableName"
      from refold.projections
      where name = $1 and state = 'active'
      order by version desc
      limit 1`,
    values: [name],
  });
  return rows[0];
}

/** Has processes that register versions take turns, until the transaction ends. */
export async function lockRegistry(db: Queryable, key: bigint): Promise<void> {
  await db.query({ text: 'select pg_advisory_xact_lock($1)', values: [key] });
}

/** The reason of a version's last step. */
export async function lastReason(db: Queryable, name: string, version: number): Promise<string | undefined> {
  const rows = await db.query<{ reason: string }>({
    text: `
      select reason
      from refold.transitions
      where name = $1 and version = $2
      order by id desc
      limit 1`,
    values: [name, version],
  });
  return rows[0]?.reason;
}
