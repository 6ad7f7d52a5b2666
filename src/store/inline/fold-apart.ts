import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { rowRefused } from '../../projections/fold/fold-failures.ts';
import { type FoldFailure, keyText, type Projection } from '../../projections/projection/projection.ts';
import { insertDeadLetters, type NewDeadLetter, readBlockedAmong } from '../processors/dead-letters.ts';
import { recordChanges } from '../processors/record-changes.ts';
import { UnwrittenFailures } from '../processors/unwritten-failures.ts';
import type { Queryable } from '../statements/statement.ts';
import type { ReadTable } from '../tables/read-table.ts';
import { refusalOf } from '../tables/refused-rows.ts';
import { type ChangedRow, writeAcceptable } from '../tables/write-rows.ts';
import {
  type FoldBatchOptions,
  foldBatch,
  keysTouched,
  type LeftOutOfRows,
  recordSkipsOf,
  refusesAppend,
} from './folded-batch.ts';

export interface FoldedApart extends LeftOutOfRows {
  /** Why the events cannot be folded, if that {@link refusesAppend refuses the append}. The caller must roll back the transaction. */
  readonly refused: RefoldError | null;
}

/**
 * Folds events one by one after the database refused a row of the batch. Each event is written before the next is folded. This finds the
 * events that lead to a refused row; the others take effect.
 */
export async function foldApart(
  tx: Queryable,
  projection: Projection,
  table: ReadTable,
  events: readonly RecordedEvent[],
  options: Pick<FoldBatchOptions, 'freeze' | 'pace' | 'refuse'>,
): Promise<FoldedApart> {
  const { policy } = projection.onError;
  const skipped: FoldFailure[] = [];
  const letters: NewDeadLetter[] = [];
  const written = new Map<string, ChangedRow>();
  for (const event of events) {
    const keys = keysTouched(projection, [event]);
    const rows = keys.size > 0 ? await table.load(tx, [...keys.values()]) : [];
    const blocked = policy === 'dead-letter' ? await readBlockedAmong(tx, projection.tableName, [...keys.keys()]) : [];
    const byKey = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    const folded = await foldBatch(projection, [[event]], byKey, { ...options, blocked, appended: true });
    for (const refused of folded.refused.values()) return { letters, skipped, refused };
    const failures = new UnwrittenFailures(projection);
    const taken = new Map(folded.changed);
    for (const { key, error } of await writeAcceptable(tx, table, [...taken.values()])) {
      const refusal = refusalOf(projection, error);
      const refused = rowRefused(projection, event, key, refusal);
      if (refusesAppend(projection, refusal)) return { letters, skipped, refused };
      taken.delete(keyText(key));
      failures.add({ event, key, error: refused });
    }
    skipped.push(...folded.skipped, ...failures.skipped);
    const ofEvent = [...folded.letters, ...failures.letters];
    letters.push(...ofEvent);
    for (const [text, changed] of taken) written.set(text, changed);
    // Before the next event is folded: it may have to wait behind this one.
    if (ofEvent.length > 0) await insertDeadLetters(tx, projection, ofEvent);
  }
  await recordSkipsOf(tx, projection, skipped);
  await publish(tx, projection, events.at(-1)?.position, [...written.values()]);
  return { letters, skipped, refused: null };
}

async function publish(
  tx: Queryable,
  projection: Projection,
  checkpoint: RecordedEvent['position'] | undefined,
  written: readonly ChangedRow[],
): Promise<void> {
  if (written.length === 0 || checkpoint === undefined) return;
  const upserted = written.flatMap(({ key, row }) => (row ? [key] : []));
  const deleted = written.flatMap(({ key, row }) => (row ? [] : [key]));
  await recordChanges(tx, { projection, checkpoint, upserted, deleted });
}
