import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import type { FloorLayer, Partition } from '../../projections/projection/partition.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { EventLog } from '../../store/event-log.ts';
import { type BlockedSince, readAllLeftOut, readBlockedSince } from '../../store/processors/left-out.ts';
import type { RowChoice } from '../../store/set-based/row-choice.ts';
import { createSetMerge } from '../../store/set-based/set-merge.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { compareTables } from '../../store/tables/compare-tables.ts';
import { createTemporaryTable } from '../../store/tables/read-table.ts';
import { isSqlRowRefusal, refusalOf } from '../../store/tables/refused-rows.ts';
import { bisectFailures } from '../processors/bisect-failures.ts';
import { cutsAround, type LeftOutRows, nextCut, reachedShares, rowsByPosition } from '../set-based/left-out-rows.ts';
import { upcastEvents } from '../set-based/upcast-events.ts';

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
  /** Each row is compared as of its own partition's checkpoint. */
  readonly partitions: readonly Partition[];
  readonly samples: number;
  /** Awaited after each batch, before the next one is folded. */
  onBatch(position: GlobalPosition): Promise<void>;
}

// Larger than any batch of the processor and no multiple of one, to find SQL whose result depends on where batches end.
const batchSize = 1_234_567n;
const upcastBatchSize = 12_345n;

/** Evaluates `evolveSql` over the whole log into a temporary table and compares the tables, all in the database. */
export async function verifySetBased(options: VerifySetBasedOptions) {
  const { snapshot, log, readSchema, projection, fold, tableName, upTo, samples, onBatch } = options;
  const found = qualified(readSchema, tableName);
  const expected = await createTemporaryTable(snapshot, storedIn(projection, tableName), readSchema);
  const merge = createSetMerge(projection, fold, expected, snapshot);
  const size = merge.upcast.length > 0 ? upcastBatchSize : batchSize;
  const table = await readFoldedTable(options);
  for (let after = projection.startAfter; after < upTo; ) {
    const cut = nextCut(table.cuts, after, after + size < upTo ? globalPosition(after + size) : upTo);
    const whole = await upcastEvents(log, merge.upcast, after, cut);
    const end = whole.upTo;
    after = await bisectFailures(
      after,
      end,
      async (from, to) => {
        const choice = choiceOf(table, to);
        if (choice === null) return;
        const { events: upcast } = await upcastEvents(log, merge.upcast, from, to, whole);
        await savepoint(snapshot, () =>
          merge.run(snapshot, { after: from, upTo: to, upcast, choice }, { keys: false }),
        );
      },
      async (position, error) => {
        if (isMissing(projection, table, position)) return 'skip';
        throw new RefoldError(
          'EVOLVE_FAILED',
          `${projection.id}: evolveSql fails at position ${position}, which the version has passed: ${refusalOf(projection, error).reason}`,
          { projection: projection.id, position: position.toString() },
        );
      },
      { isFailure: (error) => isEvolveFailure(error) || isSqlRowRefusal(projection, error) },
    );
    await onBatch(after);
  }
  return compareTables(snapshot, projection, { expected, found }, samples);
}

/** What the table contains of the log. */
interface FoldedTable {
  /** The events that are missing in some rows. */
  readonly leftOut: ReadonlyMap<bigint, LeftOutRows>;
  /** Of the rows with dead letters, everything since the first one is missing. */
  readonly blocked: readonly BlockedSince[];
  /** The checkpoints of the partitions, now and under earlier numbers of them. */
  readonly layers: readonly FloorLayer[];
  readonly cuts: readonly bigint[];
  /** All rows are folded up to here. */
  readonly reached: bigint;
}

async function readFoldedTable(options: VerifySetBasedOptions): Promise<FoldedTable> {
  const { snapshot, projection, tableName, partitions } = options;
  const { name, version } = projection;
  // Do not fold refused events again: a trigger of `setUp` may have refused them, and the temporary table lacks it.
  const leftOut = rowsByPosition(await readAllLeftOut(snapshot, { name, version, tableName }));
  const blocked = await readBlockedSince(snapshot, tableName);
  const checkpoints = partitions.map(({ checkpoint }) => checkpoint);
  const layers = [
    { of: partitions.length, checkpoints },
    ...partitions.flatMap(({ floors }) => floors), // the same ones, until a partition is past them
  ];
  const since = new Map(blocked.map((row) => [row.key, row.since as bigint]));
  const alone = [...leftOut].filter(
    ([position, rows]) => rows === 'all' || [...rows].some((key) => position < (since.get(key) ?? position + 1n)),
  );
  return {
    leftOut,
    blocked,
    layers,
    cuts: cutsAround(
      alone.map(([position]) => position),
      [...since.values()].map((position) => position - 1n).concat(layers.flatMap((layer) => layer.checkpoints)),
    ),
    reached: checkpoints.reduce((least, checkpoint) => (checkpoint < least ? checkpoint : least)),
  };
}

/** The rows that contain the events of a batch which ends at a position; null if there are none. */
function choiceOf({ leftOut, blocked, layers, reached }: FoldedTable, to: GlobalPosition): RowChoice | null {
  const rows = leftOut.get(to);
  if (rows === 'all') return null;
  const waiting = blocked.filter(({ since }) => since <= to).map(({ key }) => key);
  return {
    ...(reached >= to ? {} : { within: reachedShares(layers, to) }),
    except: [...waiting, ...(rows ?? [])],
  };
}

/** Whether an event on which the SQL fails is missing in the table, too. */
function isMissing({ onError }: Projection, { leftOut, reached }: FoldedTable, position: GlobalPosition): boolean {
  // A partition that has not reached the event may be the one that will leave it out.
  return onError.policy === 'skip' || leftOut.has(position) || position > reached;
}
