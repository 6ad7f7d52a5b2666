import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import { fold, foldSteps, isEvolveFailure } from '../projections/fold.ts';
import { keyText, type Projection, storedIn } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import type { Database } from '../store/database.ts';
import {
  type DeadLetter,
  deleteDeadLetters,
  invalidateRows,
  readDeadLetters,
  recordAttempt,
} from '../store/dead-letters.ts';
import type { EventLog } from '../store/event-log.ts';
import { createReadTable } from '../store/read-table.ts';
import { lockCheckpoint } from '../store/rebuilds.ts';
import { recordStep } from '../store/registry.ts';
import type { Queryable } from '../store/statement.ts';
import { expectVersion, refused, type StepReason } from './lifecycle.ts';

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

/** An error as a letter keeps it. */
export function letterError(error: RefoldError): { message: string; stack?: string } {
  const stack = error.cause instanceof Error ? error.cause.stack : error.stack;
  return { message: error.message, ...(stack === undefined ? {} : { stack }) };
}

async function redeliver(
  { db, log, readSchema, projection }: DeadLetterOptions,
  { actor, reason }: StepReason,
  key: string | undefined,
  what: 'retry' | 'discard',
): Promise<Redelivery> {
  const { name, version } = projection;
  return db.transaction(async (tx) => {
    const { state, heldReason, tableName } = await expectVersion(tx, name, version);
    // The processor can't fold a later event of these rows meanwhile.
    await lockCheckpoint(tx, name, version);
    const letters = await readDeadLetters(tx, tableName, key === undefined ? undefined : canonicalKey(key));
    if (letters.length === 0)
      throw refused(
        name,
        version,
        key === undefined ? 'has no dead letters.' : `has no dead letters of the row ${key}.`,
      );
    const events = new Map(
      (await log.readAt([...new Set(letters.map(({ position }) => position))])).map((event) => [event.position, event]),
    );
    let result: Redelivery = { folded: 0, discarded: 0, left: 0 };
    for (const ofRow of Map.groupBy(letters, (letter) =>
      letter.key ? keyText(letter.key) : `without a key ${letter.id}`,
    ).values()) {
      result = added(result, await redeliverRow(tx, storedIn(projection, tableName), readSchema, ofRow, events, what));
    }
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

async function redeliverRow(
  tx: Queryable,
  projection: Projection,
  readSchema: string,
  letters: readonly DeadLetter[],
  events: ReadonlyMap<bigint, RecordedEvent>,
  what: 'retry' | 'discard',
): Promise<Redelivery> {
  const table = createReadTable(projection, readSchema);
  const first = letters[0] as DeadLetter; // groups are not empty
  const text = first.key && keyText(first.key);
  const [stored] = first.key ? await table.load(tx, [first.key]) : [];
  const rows = new Map<string, Row | null>(text === null ? [] : [[text, stored ?? null]]);
  const done: bigint[] = [];
  let discarded = 0;
  for (const letter of letters) {
    if (what === 'discard' && letter.error) {
      done.push(letter.id);
      discarded++;
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
  await deleteDeadLetters(tx, done);
  return { folded: done.length - discarded, discarded, left: letters.length - done.length };
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
