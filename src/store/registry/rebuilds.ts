import { randomInt } from 'node:crypto';
import { sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import { storedText } from '../../thrown.ts';
import type { ProcessorClaim } from '../processors/checkpoints.ts';
import { type ColumnsOf, type Queryable, refoldTables, run, type TableRow } from '../statements/statement.ts';

/** `beside`: fills a new table that replaces the current one at the end. `in place`: empties and fills the version's own table. */
export type RebuildForm = TableRow<'refold.rebuilds'>['form'];

/** A requested rebuild that is not finished. */
export interface Rebuild extends ColumnsOf<'refold.rebuilds', RequestColumn | ProgressColumn> {
  /** The table that it fills. */
  readonly tableName: string;
  /** Where it started: the beginning of the log, or the position of a snapshot. */
  readonly startedAtPosition: GlobalPosition;
  /** Why its nearly complete table is not adopted automatically. */
  readonly heldReason: string | null;
}

type RequestColumn =
  | 'name'
  | 'version'
  | 'form'
  | 'table_name'
  | 'started_at_position'
  | 'snapshot_id'
  | 'held_reason'
  | 'requested_by'
  | 'reason'
  | 'requested_at';

type ProgressColumn = 'checkpoint' | 'events_folded' | 'owner' | 'status' | 'error';

const requested = refoldTables
  .selectFrom('refold.rebuilds')
  .select([
    'refold.rebuilds.name',
    'refold.rebuilds.version',
    'form',
    'table_name as tableName',
    'started_at_position as startedAtPosition',
    'snapshot_id as snapshotId',
    'held_reason as heldReason',
    'requested_by as requestedBy',
    'reason',
    'requested_at as requestedAt',
  ]);

const besides = requested
  .select(['checkpoint', 'events_folded as eventsFolded', 'owner', 'status', 'error'])
  .where('form', '=', 'beside')
  .orderBy('name')
  .orderBy('version');

/** The rebuilds that are separate processors: those of the form `beside`. */
export function readRebuilds(db: Queryable): Promise<Rebuild[]> {
  return run(db, besides, 'read rebuilds');
}

// The progress of a rebuild in place is that of its version's processors.
const inPlace = requested
  .innerJoinLateral(
    ({ selectFrom }) =>
      selectFrom('refold.processors as processor')
        .select(({ fn }) => [
          fn.min<GlobalPosition>('checkpoint').as('checkpoint'),
          sql<bigint>`sum(events_folded)::bigint`.as('eventsFolded'),
          fn.min<string | null>('owner').as('owner'),
          sql<
            Rebuild['status']
          >`case when bool_or(status = 'stopped') then 'stopped' when bool_or(status = 'running') then 'running' else 'idle' end`.as(
            'status',
          ),
          sql<Rebuild['error']>`(array_agg(error) filter (where error is not null))[1]`.as('error'),
        ])
        .whereRef('processor.name', '=', 'refold.rebuilds.name')
        .whereRef('processor.version', '=', 'refold.rebuilds.version')
        .as('built'),
    (join) => join.onTrue(),
  )
  .select(['built.checkpoint', 'built.eventsFolded', 'built.owner', 'built.status', 'built.error'])
  .where('form', '=', 'in place');

export async function readAllRebuilds(db: Queryable): Promise<Rebuild[]> {
  return [...(await readRebuilds(db)), ...(await run(db, inPlace))];
}

export interface RebuildRequest {
  readonly name: string;
  readonly version: number;
  readonly form: RebuildForm;
  readonly tableName: string;
  readonly startAt: GlobalPosition;
  /** The anchor of that position; null if it is unknown. For `in place`, the processors have it. */
  readonly anchor: string | null;
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
        anchor: request.anchor,
        // Where no earlier rebuild of the version ever was, so a stalled owner of one is fenced off from this one.
        epoch: BigInt(randomInt(2 ** 47)),
        started_at_position: request.startAt,
        snapshot_id: request.snapshotId,
        state_before: request.stateBefore,
        requested_by: request.actor,
        reason: storedText(request.reason),
      })
      .onConflict((same) => same.doNothing())
      .returning('name'),
  );
  return inserted.length > 0;
}

/** Whether a claimed rebuild is this one, not a later one of the same version, which fills another table. */
export async function isClaimed(
  db: Queryable,
  { name, version, epoch }: ProcessorClaim,
  { tableName, requestedAt }: Pick<Rebuild, 'tableName' | 'requestedAt'>,
): Promise<boolean> {
  const found = await run(
    db,
    refoldTables
      .selectFrom('refold.rebuilds')
      .select('name')
      .where('name', '=', name)
      .where('version', '=', version)
      .where('epoch', '=', epoch)
      .where('table_name', '=', tableName)
      .where(sql<boolean>`requested_at = ${requestedAt}::timestamptz`),
  );
  return found.length > 0;
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
  /** The anchor of its checkpoint; null for `in place`. */
  readonly anchor: string | null;
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
      'anchor',
      'events_folded as eventsFolded',
      'state_before as stateBefore',
      'requested_at as requestedAt',
    ]),
  );
  return ended;
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
