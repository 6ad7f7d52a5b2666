import { type QueryCreator, sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import { checkpointChannel, type ProcessorClaim } from '../processors/checkpoints.ts';
import { countOfSkips } from '../processors/left-out.ts';
import type { RefoldTables } from '../statements/refold-tables.generated.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** `beside`: fills a new table that replaces the current one at the end. `in place`: empties and fills the version's own table. */
export type RebuildForm = 'beside' | 'in place';

/** A requested rebuild that is not finished. */
export interface Rebuild {
  readonly name: string;
  readonly version: number;
  readonly form: RebuildForm;
  /** The table that it fills. */
  readonly tableName: string;
  /** Where it started: the beginning of the log, or the position of a snapshot. */
  readonly startedAtPosition: GlobalPosition;
  readonly snapshotId: bigint | null;
  readonly checkpoint: GlobalPosition;
  readonly eventsFolded: bigint;
  readonly owner: string | null;
  readonly status: 'idle' | 'running' | 'stopped';
  readonly error: { readonly message: string; readonly at: string } | null;
  /** Why its nearly complete table is not adopted automatically. */
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

/** The rebuilds that are separate processors: those of the form `beside`. */
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

/** All rebuilds. The progress of one in place is that of its version's processors. */
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
  /** For `in place`: the state that the version returns to at the end. */
  readonly stateBefore: VersionState | null;
  readonly actor: string;
  readonly reason: string;
}

/** Requests a rebuild. Returns false if one is in progress. */
export async function insertRebuild(db: Queryable, request: RebuildRequest): Promise<boolean> {
  const inserted = await run(
    db,
    refoldTables
      .insertInto('refold.rebuilds')
      .values({
        name: request.name,
        version: request.version,
        form: request.form,
        table_name: request.tableName,
        checkpoint: request.startAt,
        started_at_position: request.startAt,
        snapshot_id: request.snapshotId,
        state_before: request.stateBefore,
        requested_by: request.actor,
        reason: request.reason,
      })
      .onConflict((same) => same.doNothing())
      .returning('name'),
  );
  return inserted.length > 0;
}

/** Makes the rebuild wait for an operator, for this reason, or continue (null). Has no effect for a former owner. */
export async function holdRebuild(
  db: Queryable,
  { name, version, epoch }: ProcessorClaim,
  reason: string | null,
): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.rebuilds')
      .set({ held_reason: reason })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('epoch', '=', epoch)
      .where('held_reason', 'is distinct from', reason),
  );
}

/** Lets a waiting rebuild continue despite its dead letters. Returns false if none waits. */
export async function acceptDeadLetters(db: Queryable, name: string, version: number): Promise<boolean> {
  const accepted = await run(
    db,
    refoldTables
      .updateTable('refold.rebuilds')
      .set({ dead_letters_accepted: true, held_reason: null })
      .where('name', '=', name)
      .where('version', '=', version)
      .where('held_reason', 'is not', null)
      .returning('name'),
  );
  return accepted.length > 0;
}

/** A rebuild that has ended. */
export interface EndedRebuild {
  readonly tableName: string;
  readonly startedAtPosition: GlobalPosition;
  readonly snapshotId: bigint | null;
  /** The events that its own processor folded; 0 for `in place`. */
  readonly eventsFolded: bigint;
  readonly stateBefore: VersionState | null;
  readonly requestedAt: string;
}

/** Ends a rebuild, optionally only of one form, and returns it. Undefined if there is none. */
export async function deleteRebuild(
  db: Queryable,
  name: string,
  version: number,
  form?: RebuildForm,
): Promise<EndedRebuild | undefined> {
  let rebuild = refoldTables.deleteFrom('refold.rebuilds').where('name', '=', name).where('version', '=', version);
  if (form !== undefined) rebuild = rebuild.where('form', '=', form);
  const [ended] = await run(
    db,
    rebuild.returning([
      'table_name as tableName',
      'started_at_position as startedAtPosition',
      'snapshot_id as snapshotId',
      'events_folded as eventsFolded',
      'state_before as stateBefore',
      'requested_at as requestedAt',
    ]),
  );
  return ended;
}

export interface AdoptedTable {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly checkpoint: GlobalPosition;
  readonly codeFingerprint: string;
}

/**
 * Moves the version to another table, which is complete up to `checkpoint`. Its processors continue from there under new epochs, and their
 * owners drop their cached rows of the old table.
 */
export async function adoptTable(db: Queryable, adopted: AdoptedTable): Promise<void> {
  await run(
    db,
    refoldTables
      .with('moved', (move) => restartProcessors(move, adopted))
      .updateTable('refold.projections')
      .set(adoption(adopted))
      .where('name', '=', adopted.name)
      .where('version', '=', adopted.version),
  );
}

/**
 * Moves the version to another table, which may be behind the old one. Its processors go back to `checkpoint` under new epochs, and the
 * recorded changes of the old rows are deleted. Listeners are notified of the new position.
 */
export async function beginAgain(db: Queryable, begun: AdoptedTable): Promise<void> {
  const { name, version, checkpoint } = begun;
  await run(
    db,
    refoldTables
      .with('moved', (move) => restartProcessors(move, begun).set({ events_folded: 0, rows_written: 0 }))
      .with('forgotten', (forget) =>
        forget.deleteFrom('refold.changes').where('name', '=', name).where('version', '=', version),
      )
      .with('renamed', (rename) =>
        rename
          .updateTable('refold.projections')
          .set(adoption(begun))
          .where('name', '=', name)
          .where('version', '=', version),
      )
      .selectNoFrom(sql`pg_notify(${checkpointChannel}, ${`${name}@${version}:${checkpoint}`})`.as('notified')),
  );
}

/** Sets the processors of the version to the position of the table, and fences their owners. */
function restartProcessors(tables: QueryCreator<RefoldTables>, { name, version, tableName, checkpoint }: AdoptedTable) {
  return tables
    .updateTable('refold.processors')
    .set({
      checkpoint,
      anchor: null,
      epoch: sql`epoch + 1`,
      status: 'idle',
      error: null,
      floors: null,
      updated_at: sql`now()`,
      events_skipped: sql`case partition when 0 then ${countOfSkips(tableName)} else 0 end`,
    })
    .where('name', '=', name)
    .where('version', '=', version);
}

function adoption({ tableName, codeFingerprint }: AdoptedTable) {
  return { table_name: tableName, generation: sql<number>`generation + 1`, code_fingerprint: codeFingerprint };
}

/** The number of events that the version's processors have folded since the version began or was reset. */
export async function readEventsFolded(db: Queryable, name: string, version: number): Promise<bigint> {
  const [row] = await run(
    db,
    refoldTables
      .selectFrom('refold.processors')
      .select(sql<bigint>`coalesce(sum(events_folded), 0)::bigint`.as('events'))
      .where('name', '=', name)
      .where('version', '=', version),
  );
  return row?.events ?? 0n;
}
