import type { GlobalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/declaration/version-map.ts';
import type { Queryable } from '../postgres/statement.ts';
import { checkpointChannel, type ProcessorClaim } from '../processors/checkpoints.ts';
import { countOfSkips } from '../processors/left-out.ts';

/** Beside the table that serves, which the new one replaces in the end; or in the version's own table, which is emptied for it. */
export type RebuildForm = 'beside' | 'in place';

/** A rebuild that has been asked for and is not finished. */
export interface Rebuild {
  readonly name: string;
  readonly version: number;
  readonly form: RebuildForm;
  /** The table that it fills. */
  readonly tableName: string;
  /** Where it began: the beginning of the log, or the position of a snapshot. */
  readonly startedAtPosition: GlobalPosition;
  readonly snapshotId: bigint | null;
  readonly checkpoint: GlobalPosition;
  readonly eventsFolded: bigint;
  readonly owner: string | null;
  readonly status: 'idle' | 'running' | 'stopped';
  readonly error: { readonly message: string; readonly at: string } | null;
  /** Why its table, which is as good as complete, does not take over by itself. */
  readonly heldReason: string | null;
  readonly requestedBy: string;
  readonly reason: string;
  readonly requestedAt: string;
}

const columns = `
  rebuilds.name,
  rebuilds.version,
  form,
  table_name as "tableName",
  started_at_position as "startedAtPosition",
  snapshot_id as "snapshotId",
  held_reason as "heldReason",
  requested_by as "requestedBy",
  reason,
  requested_at as "requestedAt"`;

/** The rebuilds that are processors of their own: those beside a table that serves. */
export async function readRebuilds(db: Queryable): Promise<Rebuild[]> {
  return db.query<Rebuild>({
    name: 'read rebuilds',
    text: `
      select ${columns}, checkpoint, events_folded as "eventsFolded", owner, status, error
      from refold.rebuilds
      where form = 'beside'
      order by name, version`,
  });
}

/** All rebuilds; how far one is that is done in place, its version's processors tell. */
export async function readAllRebuilds(db: Queryable): Promise<Rebuild[]> {
  const inPlace = await db.query<Rebuild>({
    text: `
      select ${columns}, built.*
      from refold.rebuilds
      cross join lateral (
        select
          min(checkpoint) as checkpoint,
          sum(events_folded)::bigint as "eventsFolded",
          min(owner) as owner,
          case when bool_or(status = 'stopped') then 'stopped' when bool_or(status = 'running') then 'running' else 'idle' end as status,
          (array_agg(error) filter (where error is not null))[1] as error
        from refold.processors
        where processors.name = rebuilds.name and processors.version = rebuilds.version
      ) as built
      where form = 'in place'`,
  });
  return [...(await readRebuilds(db)), ...inPlace];
}

export interface RebuildRequest {
  readonly name: string;
  readonly version: number;
  readonly form: RebuildForm;
  readonly tableName: string;
  readonly startAt: GlobalPosition;
  readonly snapshotId: bigint | null;
  /** In place: the state that the version goes back to in the end. */
  readonly stateBefore: VersionState | null;
  readonly actor: string;
  readonly reason: string;
}

/** Asks for a rebuild; false where one is under way already. */
export async function insertRebuild(db: Queryable, request: RebuildRequest): Promise<boolean> {
  const rows = await db.query({
    text: `
      insert into refold.rebuilds
        (name, version, form, table_name, checkpoint, started_at_position, snapshot_id, state_before, requested_by, reason)
      values ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)
      on conflict do nothing
      returning name`,
    values: [
      request.name,
      request.version,
      request.form,
      request.tableName,
      request.startAt,
      request.snapshotId,
      request.stateBefore,
      request.actor,
      request.reason,
    ],
  });
  return rows.length > 0;
}

/** The rebuild beside the version's table waits for an operator, for this reason, or goes on (null). Changes nothing for a former owner. */
export async function holdRebuild(
  db: Queryable,
  { name, version, epoch }: ProcessorClaim,
  reason: string | null,
): Promise<void> {
  await db.query({
    text: `
      update refold.rebuilds
      set held_reason = $4
      where name = $1 and version = $2 and epoch = $3 and held_reason is distinct from $4`,
    values: [name, version, epoch, reason],
  });
}

/** An operator takes the table of a rebuild that waits, with its dead letters; false where none waits. */
export async function acceptDeadLetters(db: Queryable, name: string, version: number): Promise<boolean> {
  const rows = await db.query({
    text: `
      update refold.rebuilds
      set dead_letters_accepted = true, held_reason = null
      where name = $1 and version = $2 and held_reason is not null
      returning name`,
    values: [name, version],
  });
  return rows.length > 0;
}

/** What a rebuild was that has ended. */
export interface EndedRebuild {
  readonly tableName: string;
  readonly startedAtPosition: GlobalPosition;
  readonly snapshotId: bigint | null;
  /** By a processor of its own; 0 in place. */
  readonly eventsFolded: bigint;
  readonly stateBefore: VersionState | null;
  readonly requestedAt: string;
}

/** Ends a rebuild, of this form where one is given, and tells what it was; undefined where there is none. */
export async function deleteRebuild(
  db: Queryable,
  name: string,
  version: number,
  form?: RebuildForm,
): Promise<EndedRebuild | undefined> {
  const rows = await db.query<EndedRebuild>({
    text: `
      delete from refold.rebuilds
      where name = $1 and version = $2 and ($3::text is null or form = $3)
      returning
        table_name as "tableName",
        started_at_position as "startedAtPosition",
        snapshot_id as "snapshotId",
        events_folded as "eventsFolded",
        state_before as "stateBefore",
        requested_at as "requestedAt"`,
    values: [name, version, form ?? null],
  });
  return rows[0];
}

export interface AdoptedTable {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
  readonly codeFingerprint: string;
}

/**
 * The version's rows are in another table from now on, complete up to `checkpoint`. Its processors go on from there under new
 * epochs, so that their owners drop the rows that it remembers of the old table.
 */
export async function adoptTable(db: Queryable, adopted: AdoptedTable): Promise<void> {
  await db.query({
    text: `
      with moved as (
        update refold.processors
        set
          checkpoint = $4, anchor = null, epoch = epoch + 1, status = 'idle', error = null, floors = null, updated_at = now(),
          events_skipped = case partition when 0 then ${countOfSkips('$3')} else 0 end
        where name = $1 and version = $2
      )
      update refold.projections
      set table_name = $3, generation = generation + 1, code_fingerprint = $5
      where name = $1 and version = $2`,
    values: [adopted.name, adopted.version, adopted.tableName, adopted.checkpoint, adopted.codeFingerprint],
  });
}

/**
 * The version's rows are in another table from now on, which may be behind the old one: its processors go back to `checkpoint` under a
 * new epoch, and what was kept of changes is of the old rows. Everybody hears how far the version is now.
 */
export async function beginAgain(db: Queryable, begun: AdoptedTable): Promise<void> {
  await db.query({
    text: `
      with moved as (
        update refold.processors
        set
          checkpoint = $4, anchor = null, epoch = epoch + 1, status = 'idle', error = null, floors = null, updated_at = now(),
          events_folded = 0, rows_written = 0, events_skipped = case partition when 0 then ${countOfSkips('$3')} else 0 end
        where name = $1 and version = $2
      ), forgotten as (
        delete from refold.changes where name = $1 and version = $2
      ), renamed as (
        update refold.projections
        set table_name = $3, generation = generation + 1, code_fingerprint = $5
        where name = $1 and version = $2
      )
      select pg_notify('${checkpointChannel}', $1::text || '@' || $2::text || ':' || $4::text)`,
    values: [begun.name, begun.version, begun.tableName, begun.checkpoint, begun.codeFingerprint],
  });
}

/** How many events the version's processors have folded since it began, or began again. */
export async function readEventsFolded(db: Queryable, name: string, version: number): Promise<bigint> {
  const rows = await db.query<{ events: bigint }>({
    text: `
      select coalesce(sum(events_folded), 0)::bigint as events
      from refold.processors
      where name = $1 and version = $2`,
    values: [name, version],
  });
  return rows[0]?.events ?? 0n;
}
