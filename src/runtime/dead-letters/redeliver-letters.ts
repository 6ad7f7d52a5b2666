import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { discardText } from '../../projections/fold/discarded.ts';
import { fold, foldSteps } from '../../projections/fold/fold.ts';
import { isEvolveFailure, rowRefused } from '../../projections/fold/fold-failures.ts';
import { keyText, type Projection } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { EventLog } from '../../store/event-log.ts';
import {
  type DeadLetter,
  deleteDeadLetters,
  letterError,
  readDeadLetters,
  recordAttempt,
} from '../../store/processors/dead-letters.ts';
import { readDiscards } from '../../store/processors/discards.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { TransactionPace } from '../../store/statements/transaction-pace.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { isRowRefusal, refusalOf } from '../../store/tables/refused-rows.ts';
import { writeAcceptable, writeRows } from '../../store/tables/write-rows.ts';
import { expectDeployedCode } from './deployed-code.ts';
import { redeliveryBySql } from './redeliver-by-sql.ts';

/** The table whose dead letters are redelivered. */
export interface LetterTable {
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
}

/** The result of redelivering the dead letters of some rows. */
export interface Redelivery {
  /** Events folded into their rows. */
  readonly folded: number;
  /** Events discarded. */
  readonly discarded: number;
  /** Events that remain dead letters. */
  readonly left: number;
  /** Whether a processor that had stopped continues. @default false */
  readonly continues?: boolean;
}

/**
 * Redelivers the dead letters that a table received with a snapshot's rows, or collected while it was built. It folds each row's letters in order
 * until one fails, and leaves out discarded ones. `where discarded`: only rows of which something was discarded.
 */
export async function redeliverInherited(
  tx: Queryable,
  table: LetterTable,
  which: 'all' | 'where discarded' = 'all',
): Promise<void> {
  const { name, version, tableName } = table.projection;
  const letters = await readDeadLetters(tx, tableName);
  if (letters.length === 0) return;
  if (which === 'all') await expectDeployedCode(tx, table.projection); // requested by any process, not by the owner
  const discarded = await readDiscards(tx, name, version);
  const isDiscarded = ({ position, key }: DeadLetter) => discarded.has(discardText(position, key));
  const rows = new Set(letters.filter(isDiscarded).map(rowOf));
  await redeliverRows(tx, table, which === 'all' ? letters : letters.filter((letter) => rows.has(rowOf(letter))), {
    isDiscarded,
    onDiscard: async () => {},
  });
}

export interface DiscardedLetters {
  isDiscarded(letter: DeadLetter): boolean;
  onDiscard(ids: readonly bigint[]): Promise<void>;
}

export async function redeliverRows(
  tx: Queryable,
  table: LetterTable,
  letters: readonly DeadLetter[],
  discarding: DiscardedLetters,
): Promise<Redelivery> {
  let result: Redelivery = { folded: 0, discarded: 0, left: 0 };
  for (const ofRow of Map.groupBy(letters, rowOf).values()) {
    result = added(result, await redeliverRow(tx, table, ofRow, discarding));
  }
  return result;
}

/** A dead letter without a key forms a group of its own. */
function rowOf({ id, key }: DeadLetter): string {
  return key ? keyText(key) : `without a key ${id}`;
}

/** Writes the row once for all its dead letters. If the database refuses that, writes it once for each, to find the letter that fails. */
async function redeliverRow(
  tx: Queryable,
  table: LetterTable,
  letters: readonly DeadLetter[],
  discarding: DiscardedLetters,
): Promise<Redelivery> {
  const { sqlFold } = table.projection;
  if (sqlFold) return redeliverBySql(tx, table, sqlFold, letters, discarding);
  const one = (each: boolean) => redeliverOne(tx, table, letters, { ...discarding, each });
  // A unique value may be taken and released again in between, which only shows if each letter is written.
  if (table.projection.uniqueIndexes.length > 0) return one(true);
  try {
    return await savepoint(tx, () => one(false));
  } catch (error) {
    if (!isRowRefusal(error)) throw error;
    return one(true);
  }
}

async function redeliverOne(
  tx: Queryable,
  { log, projection, readSchema }: LetterTable,
  letters: readonly DeadLetter[],
  discarding: DiscardedLetters & { readonly each: boolean },
): Promise<Redelivery> {
  const table = createReadTable(projection, readSchema);
  const { key } = letters[0] as DeadLetter; // groups are not empty
  const text = key && keyText(key);
  const [stored] = key ? await table.load(tx, [key]) : [];
  const rows = new Map<string, Row | null>(text === null ? [] : [[text, stored ?? null]]);
  const result = await redeliverInOrder(tx, log, letters, discarding, async (_, event) => {
    const error = foldLetter(projection, event, text, rows);
    if (error || !discarding.each || !event || !key || text === null) return error;
    const [refused] = await writeAcceptable(tx, table, [{ key, row: rows.get(text) ?? null }]);
    return refused ? rowRefused(projection, event, key, refusalOf(projection, refused.error)) : null;
  });
  if (!discarding.each && key && text !== null) await writeRows(tx, table, [{ key, row: rows.get(text) ?? null }]);
  return result;
}

/** Redelivers the letters of one row until one fails. @param redeliver returns why it fails; null if it does not */
async function redeliverInOrder(
  tx: Queryable,
  log: EventLog,
  letters: readonly DeadLetter[],
  discarding: DiscardedLetters,
  redeliver: (letter: DeadLetter, event: RecordedEvent | undefined) => Promise<RefoldError | null>,
): Promise<Redelivery> {
  const eventOf = eventsInOrder(log, letters);
  const pace = new TransactionPace(tx);
  const done: bigint[] = [];
  // Also those behind a letter that fails: they must not be folded when it is retried.
  const discarded = letters.filter((letter) => discarding.isDiscarded(letter)).map(({ id }) => id);
  for (const letter of letters) {
    if (discarding.isDiscarded(letter)) continue;
    const error = await redeliver(letter, await eventOf(letter));
    if (error) {
      await recordAttempt(tx, letter.id, letterError(error));
      break;
    }
    done.push(letter.id);
    if (pace.isDue) await pace.turn();
  }
  if (discarded.length > 0) await discarding.onDiscard(discarded);
  await deleteDeadLetters(tx, [...done, ...discarded]);
  return { folded: done.length, discarded: discarded.length, left: letters.length - done.length - discarded.length };
}

/** Reads the events of letters, which are asked for in their order. Only a page of them is in memory: they may be large. */
function eventsInOrder(
  log: EventLog,
  letters: readonly DeadLetter[],
): (letter: DeadLetter) => Promise<RecordedEvent | undefined> {
  const events = log.readEach(letters.map(({ position }) => position));
  let next: IteratorResult<RecordedEvent> | undefined;
  return async ({ position }) => {
    next ??= await events.next();
    while (!next.done && next.value.position < position) next = await events.next();
    return next.done || next.value.position > position ? undefined : next.value;
  };
}

async function redeliverBySql(
  tx: Queryable,
  { log, projection, readSchema }: LetterTable,
  sqlFold: SqlFold,
  letters: readonly DeadLetter[],
  discarding: DiscardedLetters,
): Promise<Redelivery> {
  const redeliver = redeliveryBySql(tx, readSchema, projection, sqlFold);
  return redeliverInOrder(tx, log, letters, discarding, async (letter, event) => {
    if (!event) return null;
    return letter.key === null ? keyUnknown(projection, event) : redeliver(letter, event);
  });
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
    if (text === null) throw keyUnknown(projection, event);
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

/** If a letter without a key returns keys now, later events of those rows are already folded. Only a rebuild can fold it in order. */
function keyUnknown({ id }: Projection, { type, position }: RecordedEvent): RefoldError {
  return new RefoldError(
    'EVOLVE_FAILED',
    `${id}: the key of '${type}' at position ${position} could not be determined, and later events of its rows were folded. Rebuild the version, or discard the event.`,
  );
}

function added(a: Redelivery, b: Redelivery): Redelivery {
  return { folded: a.folded + b.folded, discarded: a.discarded + b.discarded, left: a.left + b.left };
}
