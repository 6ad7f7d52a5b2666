import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { FloorLayer } from '../../projections/declaration/partition.ts';
import type { Queryable } from '../postgres/statement.ts';
import type { ProcessorKind, ProcessorUnit } from '../server/processor-unit.ts';
import { readFloors, type StoredFloors } from './partitions.ts';
import { insertRun } from './runs.ts';

/** Why a processor can't go on. */
export interface ProcessorError {
  readonly message: string;
  readonly code?: string;
  readonly position?: string;
  readonly at: string;
  /** Of the code that stopped. */
  readonly codeFingerprint?: string;
}

/**
 * Channel that tells `name@version:checkpoint` after each batch, and where there are several partitions
 * `name@version/partition/partitions:checkpoint`.
 */
export const checkpointChannel = 'refold_checkpoints';

interface UnitTable {
  readonly table: string;
  /** The unit's row: $1 is its name, $2 its version, $3 its partition. */
  readonly isUnit: string;
  /** What else changes with the checkpoint, which moves to $6. */
  readonly moves: string;
  /** What else a move of the checkpoint does, as an expression over the moved row. */
  readonly onMove: string;
  /** What else the row says of the unit. */
  readonly more: string;
}

const unitTables: Readonly<Record<ProcessorKind, UnitTable>> = {
  processor: {
    table: 'refold.processors',
    isUnit: 'name = $1 and version = $2 and partition = $3',
    moves: `, floors = case when (floors ->> 'until')::bigint > $6 then floors end`,
    onMove: `pg_notify(
      '${checkpointChannel}',
      name || '@' || version || case partitions when 1 then '' else '/' || partition || '/' || partitions end || ':' || checkpoint
    )`,
    more: ', partitions, floors',
  },
  // A rebuild is one unit, whatever it rebuilds.
  rebuild: {
    table: 'refold.rebuilds',
    isUnit: 'name = $1 and version = $2 and $3 = 0',
    moves: '',
    onMove: 'null',
    more: '',
  },
  // So is a reactor, which has no versions.
  reactor: { table: 'refold.reactors', isUnit: 'name = $1 and $2 = 0 and $3 = 0', moves: '', onMove: 'null', more: '' },
};

/** A unit in the hands of an owner. */
export interface ProcessorClaim extends ProcessorUnit {
  /** The fence: batches commit only while the unit's row still has this epoch. */
  readonly epoch: bigint;
  readonly checkpoint: GlobalPosition;
  /** Of how many partitions it is one. */
  readonly partitions: number;
  /** What was folded beyond the checkpoint when there was another number of partitions. */
  readonly floors: readonly FloorLayer[];
  /** Of the server when it was claimed. What is folded in memory does not outlive it: after a fail-over, its events may be gone. */
  readonly serverStart: bigint;
  /**
   * Why nothing can go on from the checkpoint: the log ends before it (`beyond`), or holds other events up to there than those that were
   * folded (`other`). Null where all is well.
   */
  readonly lost: 'beyond' | 'other' | null;
}

/** Makes `owner` the one whose batches commit; batches of any former owner fail from now on. */
export async function claimProcessor(db: Queryable, unit: ProcessorUnit, owner: string): Promise<ProcessorClaim> {
  const { kind, name, version, partition } = unit;
  const { table, isUnit, more } = unitTables[kind];
  const rows = await db.query<{
    epoch: bigint;
    checkpoint: GlobalPosition;
    partitions?: number;
    floors?: StoredFloors | null;
    serverStart: bigint;
    lost: ProcessorClaim['lost'];
  }>({
    text: `
      update ${table}
      set epoch = epoch + 1, owner = $4, status = 'running', error = null, started_at = now(), updated_at = now()
      where ${isUnit}
      returning
        epoch,
        checkpoint,
        refold.server_start() as "serverStart",
        refold.lost_history(checkpoint, anchor) as lost${more}`,
    values: [name, version, partition, owner],
  });
  const claimed = rows[0];
  if (!claimed)
    throw new RefoldError('INVALID_TRANSITION', `${name}@${version} is not in the registry any more.`, {
      name,
      version,
    });
  const { epoch, checkpoint, partitions = 1, floors = null, serverStart, lost } = claimed;
  return {
    kind,
    name,
    version,
    partition,
    epoch,
    checkpoint,
    partitions,
    floors: readFloors(floors),
    serverStart,
    lost,
  };
}

export interface Advance {
  readonly claim: ProcessorClaim;
  readonly from: GlobalPosition;
  readonly to: GlobalPosition;
  readonly events: number;
  readonly rows: number;
  /** Time spent on them, for the run log. */
  readonly busyMs: number;
}

/**
 * Moves the checkpoint in the transaction that writes the rows, or with a statement that does both; keeps what was done in the run log, and
 * tells listeners when it commits.
 *
 * @throws RefoldError `PROCESSOR_FENCED` where another owner took over, or the checkpoint is not where this owner left it.
 */
export async function advanceCheckpoint(
  db: Queryable,
  { claim, from, to, events, rows, busyMs }: Advance,
  also?: AlongWithAdvance,
): Promise<void> {
  const { kind, name, version, partition, epoch, serverStart } = claim;
  const moved = await db.query({
    name: `advance ${kind}${also ? ` ${also.name}` : ''}`,
    text: advanceText(kind, also?.parts ?? ''),
    values: [name, version, partition, epoch, from, to, events, rows, busyMs, serverStart, ...(also?.values ?? [])],
  });
  if (moved.length === 0) throw fenced(claim);
}

function advanceText(kind: ProcessorKind, parts: string): string {
  const { table, isUnit, moves, onMove } = unitTables[kind];
  return `
      with moved as (
        update ${table}
        set
          checkpoint = $6,
          anchor = refold.checkpoint_anchor($6),
          events_folded = events_folded + $7,
          rows_written = rows_written + $8,
          updated_at = now()${moves}
        where ${isUnit} and epoch = $4 and checkpoint = $5 and refold.server_start() = $10
        returning *
      ), run as (
        ${insertRun(kind, { from: '$5', to: '$6', batches: '1', events: '$7', rows: '$8', busyMs: '$9' })}
      )${parts}
      select ${onMove} from moved`;
}

/** What else is done in the statement that moves a checkpoint, and only where it moves. */
export interface AlongWithAdvance {
  readonly name: string;
  /** Further parts of its `with`, each with a comma in front, which do nothing where `moved` is empty; $6 is the new checkpoint. */
  readonly parts: string;
  /** $11 and on. */
  readonly values: readonly unknown[];
}

/** Holds the unit's row for its owner, until the transaction ends. @throws RefoldError `PROCESSOR_FENCED` where another owner took over */
export async function expectClaim(tx: Queryable, claim: ProcessorClaim): Promise<void> {
  const { table, isUnit } = unitTables[claim.kind];
  const rows = await tx.query({
    text: `select epoch from ${table} where ${isUnit} and epoch = $4 for update`,
    values: [claim.name, claim.version, claim.partition, claim.epoch],
  });
  if (rows.length === 0) throw fenced(claim);
}

function fenced({ name, version, epoch }: ProcessorClaim): RefoldError<'PROCESSOR_FENCED'> {
  return new RefoldError(
    'PROCESSOR_FENCED',
    `${name}@${version}: another owner has taken over (epoch ${epoch} is past), or the server was started again.`,
    { name, version },
  );
}

/**
 * Keeps that nothing is known of how far the version is, so that nobody takes its rows for complete up to a position of a history that is gone.
 * Whoever claims it finds it lost, until it is built anew.
 */
export async function forgetCheckpoint(
  db: Queryable,
  { name, version, partition, epoch }: ProcessorClaim,
): Promise<void> {
  const { table, isUnit, onMove } = unitTables.processor;
  await db.query({
    text: `
      with moved as (
        update ${table}
        set checkpoint = 0, anchor = '0.lost', updated_at = now()
        where ${isUnit} and epoch = $4
        returning *
      )
      select ${onMove} from moved`,
    values: [name, version, partition, epoch],
  });
}

/** Counts what a batch did, where that is only known after its checkpoint was moved. */
export async function addWork(
  db: Queryable,
  { kind, name, version, partition }: ProcessorClaim,
  { events, rows, busyMs }: Pick<Advance, 'events' | 'rows' | 'busyMs'>,
): Promise<void> {
  const { table, isUnit } = unitTables[kind];
  await db.query({
    name: `add work ${kind}`,
    text: `
      with moved as (
        update ${table}
        set events_folded = events_folded + $4, rows_written = rows_written + $5
        where ${isUnit}
        returning *
      )
      ${insertRun(kind, { from: 'checkpoint', to: 'checkpoint', batches: '0', events: '$4', rows: '$5', busyMs: '$6' })}`,
    values: [name, version, partition, events, rows, busyMs],
  });
}

/**
 * Keeps which keys a batch changed, for subscriptions: theirs to follow, and to resume from. A partition may reach a position again with
 * other keys, after a change of their number.
 */
export async function insertChanges(
  db: Queryable,
  claim: ProcessorClaim,
  checkpoint: GlobalPosition,
  upserted: string,
  deleted: string,
): Promise<void> {
  await db.query({
    name: 'insert changes',
    text: insertChangesText('values ($1, $2, $3, $4, $5, $6)'),
    values: [claim.name, claim.version, claim.partition, checkpoint, upserted, deleted],
  });
}

/** A position may be there from before: of another number of partitions, or of a history that is gone. */
export function insertChangesText(changes: string): string {
  return `
      insert into refold.changes as before (name, version, partition, checkpoint, upserted, deleted)
      ${changes}
      on conflict (name, version, partition, checkpoint) do update
      set upserted = before.upserted || excluded.upserted, deleted = before.deleted || excluded.deleted, at = now()`;
}

/** The same along with the move of the checkpoint, of keys that a parameter holds; for rows that were only set. */
export function changesAlong(upserted: `$${number}`): string {
  return `, kept as (${insertChangesText(`select $1, $2, $3, $6, ${upserted}::jsonb, '[]' from moved`)})`;
}

/** Forgets changes that no subscription can want any more. */
export async function pruneChanges(
  db: Queryable,
  claim: Pick<ProcessorClaim, 'name' | 'version'>,
  keepMinutes: number,
): Promise<void> {
  await db.query({
    text: `
      delete from refold.changes
      where name = $1 and version = $2 and at < now() - make_interval(mins => $3)`,
    values: [claim.name, claim.version, keepMinutes],
  });
}

/**
 * The unit goes on no more by itself; its owner keeps it, so that no other process fails at the same place.
 *
 * @throws RefoldError `PROCESSOR_FENCED` where another owner took over
 */
export async function recordStop(db: Queryable, claim: ProcessorClaim, error: ProcessorError): Promise<void> {
  const { kind, name, version, partition, epoch } = claim;
  const { table, isUnit } = unitTables[kind];
  const rows = await db.query({
    text: `
      update ${table}
      set status = 'stopped', error = $5, updated_at = now()
      where ${isUnit} and epoch = $4
      returning epoch`,
    values: [name, version, partition, epoch, JSON.stringify(error)],
  });
  if (rows.length === 0) throw fenced(claim);
}

/** The owner lets go in an orderly way. */
export async function releaseProcessor(
  db: Queryable,
  { kind, name, version, partition, epoch }: ProcessorClaim,
): Promise<void> {
  const { table, isUnit } = unitTables[kind];
  await db.query({
    text: `
      update ${table}
      set owner = null, status = case status when 'stopped' then status else 'idle' end, updated_at = now()
      where ${isUnit} and epoch = $4`,
    values: [name, version, partition, epoch],
  });
}
