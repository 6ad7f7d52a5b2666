import { fold, foldSteps, type RowMemory } from '../../projections/fold/fold.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { keyText, type RowKey } from '../../projections/projection/projection.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { DeadLetter } from '../../store/processors/dead-letters.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import type { ChangedRow } from '../../store/tables/write-rows.ts';
import type { LetterTable } from './redeliver-letters.ts';

type Options = LetterTable & { readonly db: Database };

// Each takes two statements.
const mostExamined = 200;

/**
 * The rows that have the unique values which failed events claim, as they are now, by position. Of the first 200 failed events; none with
 * `evolveSql`.
 */
export async function holdersOfValues(
  options: Options,
  letters: readonly Pick<DeadLetter, 'position' | 'error'>[],
): Promise<ReadonlyMap<bigint, readonly RowKey[]>> {
  const { log, projection } = options;
  const holders = new Map<bigint, readonly RowKey[]>();
  if (projection.uniqueIndexes.length === 0 || projection.sqlFold) return holders;
  const failed = letters.filter(({ error }) => error !== null).slice(0, mostExamined);
  if (failed.length === 0) return holders;
  for await (const event of log.readEach(failed.map(({ position }) => position))) {
    const claimed = await rowsOf(options, event);
    const found = await holdersOf(options, claimed);
    if (found.length > 0) holders.set(event.position, found);
  }
  return holders;
}

/** The rows that an event leads to. None if it can't be folded for another reason than its unique values. */
async function rowsOf(
  { db, readSchema, projection }: Options,
  event: Parameters<typeof foldSteps>[1][number],
): Promise<readonly ChangedRow[]> {
  const table = createReadTable(projection, readSchema);
  const changed: ChangedRow[] = [];
  try {
    const steps = foldSteps(projection, [event]);
    const keys = steps.map(({ key }) => key);
    const rows = new Map((await table.load(db, keys)).map((row) => [keyText(table.keyOf(row)), row]));
    const memory: RowMemory = {
      get: (text) => rows.get(text) ?? null,
      set: (_, key, row) => void changed.push({ key, row }),
    };
    fold(projection, steps, memory, { freeze: false });
  } catch (error) {
    if (!isEvolveFailure(error)) throw error;
    return [];
  }
  return changed;
}

async function holdersOf(
  { db, readSchema, projection }: Options,
  claimed: readonly ChangedRow[],
): Promise<readonly RowKey[]> {
  const table = createReadTable(projection, readSchema);
  const holders = new Map<string, RowKey>();
  for (const { key, row } of claimed) {
    for (const columns of projection.uniqueIndexes) {
      if (!row || columns.some((name) => row[name] === null)) continue;
      const holder = await table.holderOf(db, { columns, rows: [row] });
      const found = holder && table.keyOf(holder);
      if (found && keyText(found) !== keyText(key)) holders.set(keyText(found), found);
    }
  }
  return [...holders.values()];
}
