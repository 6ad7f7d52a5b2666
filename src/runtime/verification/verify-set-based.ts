import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { EventLog } from '../../store/event-log.ts';
import { readRefused } from '../../store/processors/left-out.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { compareTables } from '../../store/tables/compare-tables.ts';
import { createTemporaryTable } from '../../store/tables/read-table.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { createSetMerge } from '../../store/tables/sql-fold.ts';
import { bisectFailures } from '../processors/bisect-failures.ts';
import { upcastEvents } from '../processors/upcast-events.ts';

export interface VerifySetBasedOptions {
  /** A transaction whose snapshot holds the table as it was at the checkpoint; it may write. */
  readonly snapshot: Queryable;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly fold: SqlFold;
  /** The table to verify. */
  readonly tableName: string;
  readonly upTo: GlobalPosition;
  readonly samples: number;
  /** Awaited after each batch, before the next one is folded. */
  onBatch(position: GlobalPosition): Promise<void>;
}

// Larger than any batch of the processor and no multiple of one, to find SQL whose result depends on where batches end.
const batchSize = 1_234_567n;
const upcastBatchSize = 12_345n;

/** Evaluates `evolveSql` over the whole log into a temporary table and compares the tables, all in the database. */
export async function verifySetBased({
  snapshot,
  log,
  readSchema,
  projection,
  fold,
  tableName,
  upTo,
  samples,
  onBatch,
}: VerifySetBasedOptions) {
  const found = qualified(readSchema, tableName);
  const expected = await createTemporaryTable(snapshot, storedIn(projection, tableName), readSchema);
  const merge = createSetMerge(projection, fold, expected);
  const size = merge.upcast.length > 0 ? upcastBatchSize : batchSize;
  // Do not fold skipped events again: a trigger of `setUp` may have refused them, and the temporary table lacks it.
  const skipped = await readRefused(snapshot, tableName);
  for (let after = projection.startAfter; after < upTo; ) {
    while (skipped[0] !== undefined && skipped[0] <= after) skipped.shift();
    if (skipped[0] === after + 1n) {
      after = skipped[0];
      continue;
    }
    const last = skipped[0] !== undefined && skipped[0] <= upTo ? globalPosition(skipped[0] - 1n) : upTo;
    const end = after + size < last ? globalPosition(after + size) : last;
    after = await bisectFailures(
      after,
      end,
      async (from, to) => {
        const upcast = await upcastEvents(log, merge.upcast, from, to);
        await savepoint(snapshot, () => merge.run(snapshot, { after: from, upTo: to, upcast }, { keys: false }));
      },
      async (position, error) => {
        // Events skipped by policy are not in the table either.
        if (projection.onError.policy === 'skip') return 'skip';
        throw new RefoldError(
          'EVOLVE_FAILED',
          `${projection.id}: evolveSql fails at position ${position}, which the version has passed: ${refusalOf(projection, error).reason}`,
          { projection: projection.id, position: position.toString() },
        );
      },
    );
    await onBatch(after);
  }
  return compareTables(snapshot, projection, { expected, found }, samples);
}
