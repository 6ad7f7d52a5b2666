import type { Logger } from 'pino';
import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import { discardText } from '../projections/discarded.ts';
import { fold, foldSteps, isEvolveFailure } from '../projections/fold.ts';
import { keyText, type Projection, storedIn } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import type { Database } from '../store/database.ts';
import {
  type DeadLetter,
  deleteDeadLetters,
  invalidateRows,
  letterError,
  type NewDeadLetter,
  readDeadLetters,
  recordAttempt,
} from '../store/dead-letters.ts';
import { type Discard, insertDiscards, listDiscards, readDiscards, recallDiscards } from '../store/discards.ts';
import type { EventLog } from '../store/event-log.ts';
import { lockPartitions } from '../store/partitions.ts';
import { createReadTable } from '../store/read-table.ts';
import type { Queryable } from '../store/statement.ts';
import { recordStep } from '../store/transitions.ts';
import { expectDeclaredTable, expectVersion, refused } from './expect-version.ts';
import { withoutAppends } from './leave-inline.ts';
import type { StepReason } from './step.ts';

export { letterError };

export interface DeadLetterOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
}

/** What became of the letters of the rows that were asked for. */
export interface Redelivery {
  /** Events folded into their rows now. */
  readonly folded: number;
  /** Events thrown away. */
  readonly discarded: number;
  /** Events that are still kept. */
  readonly left: number;
}

/** The letters of a version's table, in the order of the log. */
export async function listDeadLetters({ db, projection }: DeadLetterOptions): Promise<DeadLetter[]> {
  const { name, version } = projection;
  const tableName = await db.transaction(async (tx) => (await expectVersion(tx, name, version)).tableName);
  return readDeadLetters(db, tableName);
}

/**
 * Folds the kept events of each row, in order, with the code as it is now, until one fails again. The row is right then without a
 * rebuild, in one transaction for all rows.
 *
 * @param key the row's key as JSON, such as `["c1"]`; all rows where it is absent
 * @throws RefoldError `INVALID_TRANSITION` where there is nothing to retry
 */
export function retryDeadLetters(options: DeadLetterOptions, step: StepReason, key?: string): Promise<Redelivery> {
  return redeliver(options, step, key, 'retry');
}

/** Throws away the events that failed, and folds those that waited behind them. @throws RefoldError `INVALID_TRANSITION` */
export function discardDeadLetters(options: DeadLetterOptions, step: StepReason, key?: string): Promise<Redelivery> {
  return redeliver(options, step, key, 'discard');
}

/** What was thrown away of a version, in the order of the log; rebuilds and verifications leave it out. */
export function listDiscarded({ db, projection: { name, version } }: DeadLetterOptions): Promise<Discard[]> {
  return listDiscards(db, name, version);
}

/**
 * Takes back what was thrown away: the next rebuild folds those events again. The rows stay as they are until then.
 *
 * @returns how many
 * @throws RefoldError `INVALID_TRANSITION` where nothing was thrown away
 */
export function recallDiscarded(
  { db, projection }: DeadLetterOptions,
  { actor, reason }: StepReason,
  key?: string,
): Promise<number> {
  const { name, version } = projection;
  return db.transaction(async (tx) => {
    const { state, heldReason } = await expectVersion(tx, name, version);
    const recalled = await recallDiscards(tx, name, version, key === undefined ? undefined : canonicalKey(key));
    if (recalled === 0)
      throw refused(name, version, `has nothing discarded${key === undefined ? '' : ` of the row ${key}`}.`);
    const what = `dead letters, recall: ${reason} (${recalled} for the next rebuild)`;
    await recordStep(tx, { name, version, from: state, to: state, heldReason, actor, reason: what });
    return recalled;
  });
}

/** One line for a batch, however many events it set aside. */
export function tellOfDeadLetters(logger: Logger, id: string, letters: readonly NewDeadLetter[]): void {
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
  { actor, reason }: StepReason,
  key: string | undefined,
  what: 'retry' | 'discard',
): Promise<Redelivery> {
  const { name, version } = projection;
  return withoutAppends(db, projection, async (tx) => {
    const { state, heldReason, tableName } = await expectDeclaredTable(tx, projection);
    // The processor can't fold a later event of these rows meanwhile.
    await lockPartitions(tx, name, version);
    const letters = await readDeadLetters(tx, tableName, key === undefined ? undefined : canonicalKey(key));
    if (letters.length === 0)
      throw refused(
        name,
        version,
        key === undefined ? 'has no dead letters.' : `has no dead letters of the row ${key}.`,
      );
    const discarding = { name, version, actor, reason };
    const result = await redeliverRows(tx, { log, readSchema, projection: storedIn(projection, tableName) }, letters, {
      isDiscarded: (letter) => what === 'discard' && letter.error !== null,
      onDiscard: (ids) => insertDiscards(tx, discarding, ids),
    });
    await invalidateRows(tx, name, version);
    const outcome = `${result.folded} folded, ${result.discarded} discarded, ${result.left} left`;
    await recordStep(tx, {
      name,
      version,
      from: state,
      to: state,
      heldReason,
      actor,
      reason: `dead letters, ${what}: ${reason} (${outcome})`,
    });
    return result;
  });
}

/**
 * The letters that a table was given with a snapshot's rows, or has kept while it was built: folds them, each row's in their order, until
 * one fails again, and leaves out what an operator has thrown away. `where discarded`: only the rows of which something was.
 */
export async function redeliverInherited(
  tx: Queryable,
  table: Omit<DeadLetterOptions, 'db'>,
  which: 'all' | 'where discarded' = 'all',
): Promise<void> {
  const { name, version, tableName } = table.projection;
  const letters = await readDeadLetters(tx, tableName);
  if (letters.length === 0) return;
  const discarded = await readDiscards(tx, name, version);
  const isDiscarded = ({ position, key }: DeadLetter) => discarded.has(discardText(position, key));
  const rows = new Set(letters.filter(isDiscarded).map(rowOf));
  await redeliverRows(tx, table, which === 'all' ? letters : letters.filter((letter) => rows.has(rowOf(letter))), {
    isDiscarded,
    onDiscard: async () => {},
  });
}

interface Discarding {
  isDiscarded(letter: DeadLetter): boolean;
  onDiscard(ids: readonly bigint[]): Promise<void>;
}

async function redeliverRows(
  tx: Queryable,
  table: Omit<DeadLetterOptions, 'db'>,
  letters: readonly DeadLetter[],
  discarding: Discarding,
): Promise<Redelivery> {
  const positions = [...new Set(letters.map(({ position }) => position))];
  const events = new Map((await table.log.readAt(positions)).map((event) => [event.position, event]));
  let result: Redelivery = { folded: 0, discarded: 0, left: 0 };
  for (const ofRow of Map.groupBy(letters, rowOf).values()) {
    result = added(result, await redeliverRow(tx, table, ofRow, events, discarding));
  }
  return result;
}

/** A letter without a key is a row of its own. */
function rowOf({ id, key }: DeadLetter): string {
  return key ? keyText(key) : `without a key ${id}`;
}

async function redeliverRow(
  tx: Queryable,
  { projection, readSchema }: Omit<DeadLetterOptions, 'db'>,
  letters: readonly DeadLetter[],
  events: ReadonlyMap<bigint, RecordedEvent>,
  discarding: Discarding,
): Promise<Redelivery> {
  const table = createReadTable(projection, readSchema);
  const first = letters[0] as DeadLetter; // groups are not empty
  const text = first.key && keyText(first.key);
  const [stored] = first.key ? await table.load(tx, [first.key]) : [];
  const rows = new Map<string, Row | null>(text === null ? [] : [[text, stored ?? null]]);
  const done: bigint[] = [];
  const discarded: bigint[] = [];
  for (const letter of letters) {
    if (discarding.isDiscarded(letter)) {
      discarded.push(letter.id);
      continue;
    }
    const error = foldLetter(projection, events.get(letter.position), text, rows);
    if (error) {
      await recordAttempt(tx, letter.id, letterError(error));
      break;
    }
    done.push(letter.id);
  }
  // A letter without a key has told its keys now, and touches rows that nothing has held back: only a rebuild could put it in its place.
  const row = text === null ? undefined : rows.get(text);
  if (row) await table.upsert(tx, [row]);
  else if (row === null && first.key) await table.remove(tx, [first.key]);
  if (discarded.length > 0) await discarding.onDiscard(discarded);
  await deleteDeadLetters(tx, [...done, ...discarded]);
  return { folded: done.length, discarded: discarded.length, left: letters.length - done.length - discarded.length };
}

function foldLetter(
  projection: Projection,
  event: RecordedEvent | undefined,
  text: string | null,
  rows: Map<string, Row | null>,
): RefoldError | null {
  if (!event) return null;
  const memory = {
    get: (row: string) => rows.get(row),
    set: (row: string, _: unknown, value: Row | null) => void rows.set(row, value),
  };
  try {
    const steps = foldSteps(projection, [event]);
    if (text === null)
      throw new RefoldError(
        'EVOLVE_FAILED',
        `${projection.id}: the key of '${event.type}' at position ${event.position} could not be told, and later events of its rows were folded. Rebuild the version, or discard the event.`,
      );
    fold(
      projection,
      steps.filter((step) => step.text === text),
      memory,
      { freeze: false },
    );
    return null;
  } catch (error) {
    if (isEvolveFailure(error)) return error;
    throw error;
  }
}

function canonicalKey(key: string): string {
  try {
    const parsed: unknown = JSON.parse(key);
    return JSON.stringify(Array.isArray(parsed) ? parsed : [parsed]);
  } catch {
    return JSON.stringify([key]);
  }
}

function added(a: Redelivery, b: Redelivery): Redelivery {
  return { folded: a.folded + b.folded, discarded: a.discarded + b.discarded, left: a.left + b.left };
}
