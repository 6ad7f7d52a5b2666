import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { FloorLayer } from '../../projections/projection/partition.ts';
import type { ProcessorKind, ProcessorUnit } from '../server/processor-unit.ts';
import { notifyingText, sendNotifications } from '../statements/notifying.ts';
import type { Queryable, TableRow } from '../statements/statement.ts';
import type { ProcessorError } from '../statements/stored-json.ts';
import { checkpointChannel } from './checkpoint-notifications.ts';
import { type KnownLog, nextAnchor, readKnownLog } from './known-log.ts';
import { readFloors } from './partitions.ts';
import { insertRun } from './runs.ts';

interface UnitTable {
  readonly table: string;
  /** Condition that selects the unit's row: $1 is its name, $2 its version, $3 its partition. */
  readonly isUnit: string;
  /** Further assignments when the checkpoint moves to $6. */
  readonly moves: string;
  /** What listeners are notified of: an expression over the moved row. Null if nobody listens. */
  readonly notifies: string | null;
  /** Further columns to return. */
  readonly more: string;
}

const unitTables: Readonly<Record<ProcessorKind, UnitTable>> = {
  processor: {
    table: 'refold.processors',
    isUnit: 'name = $1 and version = $2 and partition = $3',
    moves: `, floors = case when (floors ->> 'until')::bigint > $6 then floors end`,
    notifies: `name || '@' || version || case when partitions = 1 then '' else '/' || partition || '/' || partitions end || ':' || checkpoint`,
    more: ', partitions, floors, rewrites',
  },
  // A rebuild is always one unit.
  rebuild: {
    table: 'refold.rebuilds',
    isUnit: 'name = $1 and version = $2 and $3 = 0',
    moves: '',
    notifies: null,
    more: '',
  },
  // So is a reactor: its versions share one checkpoint.
  reactor: { table: 'refold.reactors', isUnit: 'name = $1 and $2 = 0 and $3 = 0', moves: '', notifies: null, more: '' },
};

/** A unit that an owner has claimed. */
export interface ProcessorClaim extends ProcessorUnit {
  /** Fencing token: batches commit only while the unit's row has this epoch. */
  readonly epoch: bigint;
  readonly checkpoint: GlobalPosition;
  /** The number of partitions of the version. */
  readonly partitions: number;
  /** Positions that were folded beyond the checkpoint when the version had another number of partitions. */
  readonly floors: readonly FloorLayer[];
  /** How often rows of the version were written outside of a batch. */
  readonly rewrites: bigint;
  /** When the server was started, as of the claim. Rows folded in memory are invalid after a restart, in which their events may be lost. */
  readonly serverStart: bigint;
  /**
   * Why the unit cannot continue from its checkpoint: the log ends before it (`beyond`), or holds other events up to it than those that
   * were folded (`other`). Null if it can continue.
   */
  readonly lost: 'beyond' | 'other' | null;
  /** What is known of the log, if it is in another database: a batch of events that it may have lost is not written. Null if it is in this one. */
  readonly log: KnownLog | null;
}

/** Makes `owner` the owner of the unit. Batches of former owners fail from now on. */
export async function claimProcessor(db: Queryable, unit: ProcessorUnit, owner: string): Promise<ProcessorClaim> {
  const { kind, name, version, partition } = unit;
  const { table, isUnit, more } = unitTables[kind];
  const log = db.elsewhere?.log;
  const rows = await db.query<ClaimedRow>({
    text: `
      update ${table}
      set epoch = epoch + 1, owner = $4, status = 'running', error = null, started_at = now(), updated_at = now()
      where ${isUnit}
      returning
        epoch,
        checkpoint,
        refold.server_start() as "serverStart",
        ${log ? 'null' : 'refold.lost_history(checkpoint, anchor)'} as lost,
        anchor${more}`,
    values: [name, version, partition, owner],
  });
  const claimed = rows[0];
  if (!claimed)
    throw new RefoldError('INVALID_TRANSITION', `${name}@${version} is no longer in the registry.`, {
      name,
      version,
    });
  const { epoch, checkpoint, anchor, partitions = 1, floors = null, rewrites = 0n, serverStart } = claimed;
  const ofLog = log && (await readKnownLog(log, checkpoint, anchor, floors));
  if (ofLog?.lost === null && ofLog.checked !== anchor) {
    const text = `update ${table} set anchor = $5 where ${isUnit} and epoch = $4`;
    await db.query({ text, values: [name, version, partition, epoch, ofLog.checked] });
  }
  return {
    ...{ kind, name, version, partition },
    epoch,
    checkpoint,
    partitions,
    floors: readFloors(floors),
    rewrites,
    serverStart,
    lost: ofLog ? ofLog.lost : claimed.lost,
    log: ofLog?.known ?? null,
  };
}

type ClaimedRow = Pick<TableRow<'refold.processors'>, 'epoch' | 'checkpoint' | 'anchor'> &
  Partial<Pick<TableRow<'refold.processors'>, 'partitions' | 'floors' | 'rewrites'>> &
  Pick<ProcessorClaim, 'serverStart' | 'lost'>;

export interface Advance {
  readonly claim: ProcessorClaim;
  readonly from: GlobalPosition;
  readonly to: GlobalPosition;
  readonly events: number;
  readonly rows: number;
  /** Time spent on the batch, for the run log. */
  readonly busyMs: number;
  /** The anchor of `to`, if the log is in another database and it is known. @default it is read */
  readonly anchor?: string | null;
}

/**
 * Moves the checkpoint, in the transaction that writes the rows or in a statement that does both. Adds the batch to the run log. Listeners
 * are notified when it commits.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if another owner took over, if the checkpoint has moved since, or if the server has restarted.
 */
export async function advanceCheckpoint(
  db: Queryable,
  { claim, from, to, events, rows, busyMs, anchor: known }: Advance,
  also?: AlongWithAdvance,
): Promise<void> {
  const { kind, name, version, partition, epoch, serverStart } = claim;
  const anchor = known === undefined ? await anchorOf(db, claim, from, to) : { text: known };
  const along = also?.values ?? [];
  const moved = await db.query({
    name: `advance ${kind}${anchor ? ' apart' : ''}${also ? ` ${also.name}` : ''}`,
    text: advanceText(db, kind, also?.parts ?? '', anchor ? `$${11 + along.length}` : 'refold.checkpoint_anchor($6)'),
    values: [
      ...[name, version, partition, epoch, from, to, events, rows, busyMs, serverStart],
      ...along,
      ...(anchor ? [anchor.text] : []),
    ],
  });
  if (moved.length === 0) throw fenced(claim);
  if (unitTables[kind].notifies !== null) await sendNotifications(db, checkpointChannel, moved);
}

/**
 * The anchor of a checkpoint in a log of another database, whose server must not have been restarted since the claim. Undefined if the log is in
 * this database, where the statement that moves the checkpoint sees both.
 */
export async function anchorOf(
  db: Queryable,
  claim: ProcessorClaim,
  from: GlobalPosition,
  to: GlobalPosition,
): Promise<{ readonly text: string | null } | undefined> {
  const log = db.elsewhere?.log;
  if (!log) return undefined;
  const next = claim.log && (await nextAnchor(log, claim.log, from, to));
  if (!next) throw fenced(claim);
  return next;
}

function advanceText(db: Queryable, kind: ProcessorKind, parts: string, anchor: string): string {
  const { table, isUnit, moves } = unitTables[kind];
  return `
      with moved as (
        update ${table}
        set
          checkpoint = $6,
          anchor = ${anchor},
          events_folded = events_folded + $7,
          rows_written = rows_written + $8,
          updated_at = now()${moves}
        where ${isUnit} and epoch = $4 and checkpoint = $5 and refold.server_start() = $10
        returning *
      ), run as (
        ${insertRun(kind, { from: '$5', to: '$6', batches: '1', events: '$7', rows: '$8', busyMs: '$9' })}
      )${parts}
      ${notifyingMove(db, kind)}`;
}

function notifyingMove(db: Queryable, kind: ProcessorKind): string {
  const { notifies } = unitTables[kind];
  if (notifies === null) return 'select null from moved';
  return notifyingText(db, { channel: checkpointChannel, payload: notifies, from: ' from moved' });
}

/** Further work in the statement that moves a checkpoint. It happens only if the checkpoint moves. */
export interface AlongWithAdvance {
  readonly name: string;
  /** Further CTEs, each with a leading comma. They must do nothing if `moved` is empty. $6 is the new checkpoint. */
  readonly parts: string;
  /** Bound to $11 and following. */
  readonly values: readonly unknown[];
}

/** Locks the unit's row for its owner until the transaction ends. @throws RefoldError `PROCESSOR_FENCED` if another owner took over */
export async function expectClaim(tx: Queryable, claim: ProcessorClaim): Promise<void> {
  const { table, isUnit } = unitTables[claim.kind];
  const rows = await tx.query({
    text: `select epoch from ${table} where ${isUnit} and epoch = $4 for update`,
    values: [claim.name, claim.version, claim.partition, claim.epoch],
  });
  if (rows.length === 0) throw fenced(claim);
}

/** The error of a batch whose owner has lost its claim. */
export function fenced({ name, version, epoch }: ProcessorClaim): RefoldError<'PROCESSOR_FENCED'> {
  return new RefoldError(
    'PROCESSOR_FENCED',
    `${name}@${version}: another owner has taken over (epoch ${epoch} is outdated), or the database server was restarted.`,
    { name, version },
  );
}

/**
 * Marks the version's progress as unknown. Its rows then do not count as complete up to a position of a lost history. The next claim finds
 * the unit lost, until it is rebuilt.
 */
export async function forgetCheckpoint(
  db: Queryable,
  { name, version, partition, epoch }: ProcessorClaim,
): Promise<void> {
  const { table, isUnit } = unitTables.processor;
  const moved = await db.query({
    text: `
      with moved as (
        update ${table}
        set checkpoint = 0, anchor = '0.lost', updated_at = now()
        where ${isUnit} and epoch = $4
        returning *
      )
      ${notifyingMove(db, 'processor')}`,
    values: [name, version, partition, epoch],
  });
  await sendNotifications(db, checkpointChannel, moved);
}

/** Adds a batch's work to the counters, if it is only known after the checkpoint moved. */
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
 * Marks the unit as stopped. Its owner keeps it: another process would fail at the same event.
 *
 * @throws RefoldError `PROCESSOR_FENCED` if another owner took over
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

/** The owner releases the unit in an orderly way. */
export async function releaseProcessor(
  db: Queryable,
  { kind, name, version, partition, epoch }: ProcessorClaim,
): Promise<void> {
  const { table, isUnit } = unitTables[kind];
  await db.query({
    text: `
      update ${table}
      set owner = null, status = case when status = 'stopped' then status else 'idle' end, updated_at = now()
      where ${isUnit} and epoch = $4`,
    values: [name, version, partition, epoch],
  });
}
