import type { Logger } from 'pino';
import { typedKey } from '../../projections/projection/given-key.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../projections/projection/projection.ts';
import { announceRewrite } from '../../store/distributed/partition-checkpoints.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import {
  type DeadLetter,
  invalidateRows,
  letterError,
  type NewDeadLetter,
  readDeadLetters,
  readDeadLettersBeside,
} from '../../store/processors/dead-letters.ts';
import { type Discarding, insertDiscard, insertDiscards, recallDiscards } from '../../store/processors/discards.ts';
import { lockPartitions } from '../../store/processors/partitions.ts';
import { readStoppedAt, retryStoppedRebuild, stoppedAtId } from '../../store/processors/stopped-processors.ts';
import { recordOperation } from '../../store/registry/transitions.ts';
import { isDistributed } from '../../store/statements/placed.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { expectDeclaredTable, expectVersion, refused, type TransitionReason } from '../versions/expect-version.ts';
import { withoutAppends } from '../versions/leave-inline.ts';
import { expectDeployedCode } from './deployed-code.ts';
import { type LetterTable, type Redelivery, redeliverRows } from './redeliver-letters.ts';
import { holdersOfValues } from './value-holders.ts';

export { letterError, type Redelivery };

export interface DeadLetterOptions extends LetterTable {
  readonly db: Database;
}

export interface ListedLetter extends DeadLetter {
  /** The rows that have the unique values which it claims, as they are now. Missing if there are none, and with `evolveSql`. */
  readonly takenBy?: readonly RowKey[];
}

/** Returns the dead letters of a version's table, in log order, and the event that it or its rebuild has stopped at. */
export async function listDeadLetters(options: DeadLetterOptions): Promise<ListedLetter[]> {
  const { db, projection } = options;
  const { id, name, version } = projection;
  const tableName = await db.transaction(async (tx) => (await expectVersion(tx, name, version)).tableName);
  const stopped = (await readStoppedAt(db, id)).map(({ of: _, ...letter }) => letter);
  const letters = [...(await readDeadLetters(db, tableName)), ...stopped];
  const holders = await holdersOfValues({ ...options, projection: storedIn(projection, tableName) }, letters);
  return letters.map((letter) => {
    const takenBy = holders.get(letter.position);
    return takenBy ? { ...letter, takenBy } : letter;
  });
}

/**
 * Folds the dead letters of each row again, in order, with the current code, until one fails. The rows are then correct without a
 * rebuild. All rows change in one transaction.
 *
 * @param which the row's key as somebody typed it (`c1` or `["c1"]`, see `typedKey`), or the ids of dead letters, whose rows are meant; all rows if
 *   absent
 * @throws RefoldError `INVALID_TRANSITION` if there is nothing to retry
 */
export function retryDeadLetters(
  options: DeadLetterOptions,
  step: TransitionReason,
  which?: string | readonly bigint[],
): Promise<Redelivery> {
  return redeliver(options, step, which, 'retry');
}

/**
 * Discards the events that failed, and folds those that waited behind them. If ids are given, only those of them. The event that the processor has
 * stopped at is one of them: the processor leaves it out and continues.
 *
 * @throws RefoldError `INVALID_TRANSITION`
 */
export function discardDeadLetters(
  options: DeadLetterOptions,
  step: TransitionReason,
  which?: string | readonly bigint[],
): Promise<Redelivery> {
  return redeliver(options, step, which, 'discard');
}

/**
 * Recalls discarded events: the next rebuild folds them again. The rows stay as they are until then.
 *
 * @returns the number of recalled events
 * @throws RefoldError `INVALID_TRANSITION` if nothing was discarded
 */
export function recallDiscarded(
  { db, projection }: DeadLetterOptions,
  { actor, reason }: TransitionReason,
  key?: string,
): Promise<number> {
  const { name, version } = projection;
  return db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    const recalled = await recallDiscards(tx, name, version, canonicalKey(projection, key));
    if (recalled === 0)
      throw refused(name, version, `has nothing discarded${key === undefined ? '' : ` of the row ${key}`}.`);
    const what = `dead letters, recall: ${reason} (${recalled} for the next rebuild)`;
    await recordOperation(tx, { name, version, state, heldReason }, { actor, reason: what });
    return recalled;
  });
}

/** Logs the dead letters of a batch in one line. */
export function logDeadLetters(logger: Logger, id: string, letters: readonly NewDeadLetter[]): void {
  if (letters.length === 0) return;
  const failed = letters.filter(({ error }) => error !== null);
  const waiting = letters.length - failed.length;
  logger.warn(
    { projection: id, failed: failed.length, waiting, position: letters[0]?.position.toString() },
    `${id}: ${letters.length} dead letters: ${failed.length} could not be folded, ${waiting} wait behind one of their row.${failed[0] ? ` ${failed[0].error?.message}` : ''}`,
  );
}

async function redeliver(
  { db, log, readSchema, projection }: DeadLetterOptions,
  { actor, reason }: TransitionReason,
  which: string | readonly bigint[] | undefined,
  what: 'retry' | 'discard',
): Promise<Redelivery> {
  const { id, name, version } = projection;
  const [key, ids] = typeof which === 'string' ? [which, undefined] : [undefined, which];
  return withoutAppends(db, projection, async (tx) => {
    const { state, heldReason, tableName } = await expectDeclaredTable(tx, projection);
    // Keeps the processor from folding later events of these rows meanwhile.
    await lockPartitions(tx, name, version);
    if (isDistributed(tx, projection)) await announceRewrite(tx, { ...projection, tableName });
    const [stopped] = key === undefined && (ids?.includes(stoppedAtId) ?? true) ? await readStoppedAt(tx, id) : [];
    const letters = ids
      ? await readDeadLettersBeside(tx, tableName, ids)
      : await readDeadLetters(tx, tableName, canonicalKey(projection, key));
    if (letters.length === 0 && !stopped) {
      const such = ids ? 'no such dead letters' : 'no dead letters';
      const ofRow = key === undefined ? '' : ` of the row ${key}`;
      throw refused(name, version, `has ${such}${ofRow}.`, { deadLetters: 0 });
    }
    // The owner of the processor folds the event that it has stopped at.
    if (letters.length > 0) await expectDeployedCode(tx, projection);
    const named = ids && new Set(ids);
    const discarding = { name, version, actor, reason };
    const redelivered = await redeliverRows(
      tx,
      { log, readSchema, projection: storedIn(projection, tableName) },
      letters,
      {
        isDiscarded: (letter) => what === 'discard' && letter.error !== null && (named?.has(letter.id) ?? true),
        onDiscard: (discarded) => insertDiscards(tx, discarding, discarded),
      },
    );
    if (stopped && what === 'discard') await discardWhole(tx, log, discarding, stopped);
    const result = stopped ? withStopped(redelivered, what) : redelivered;
    if (stopped) await retryStoppedRebuild(tx, name, version);
    await invalidateRows(tx, name, version);
    const outcome = `${result.folded} folded, ${result.discarded} discarded, ${result.left} left`;
    await recordOperation(
      tx,
      { name, version, state, heldReason },
      {
        actor,
        reason: `dead letters, ${what}: ${reason} (${outcome})`,
      },
    );
    return result;
  });
}

async function discardWhole(
  tx: Queryable,
  log: EventLog,
  discarding: Discarding,
  { position }: DeadLetter,
): Promise<void> {
  const event = await log.readAt(position);
  if (event) await insertDiscard(tx, discarding, event);
}

function withStopped(result: Redelivery, what: 'retry' | 'discard'): Redelivery {
  return { ...result, discarded: result.discarded + (what === 'discard' ? 1 : 0), continues: true };
}

function canonicalKey(projection: Projection, key: string | undefined): string | undefined {
  return key === undefined ? undefined : keyText(typedKey(projection, key));
}
