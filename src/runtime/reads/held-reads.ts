import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { HeldRow, HeldRows } from '../../schema/contract/held-rows.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';
import { readHeldRows } from '../../store/processors/held-rows.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { wrapReads } from './operation-read-models.ts';

/** Finds rows that an operation reads and that lack an event up to the position that it demands. */
export interface HeldReads {
  /** Reads of this version must include the position. Called only if the version has left out events. */
  demand(projection: Projection, position: GlobalPosition): void;
  /** Checks each read of such a version with one more statement, in the same snapshot. Other reads are as before. */
  checked(reads: ReadModels): ReadModels;
}

interface LookedFor {
  readonly upTo: GlobalPosition;
  /** Null: any row. */
  readonly keys: readonly RowKey[] | null;
  /** Whether the viewer gets the row of each key. */
  isShown(index: number): boolean;
}

/** Records held rows of a version, or throws RefoldError `ROW_HELD` if they are refused. */
export async function checkHeld(
  db: Queryable,
  { name, version, tableName }: Projection,
  held: HeldRows,
  { upTo, keys, isShown }: LookedFor,
): Promise<void> {
  const own = new Set([...held.written, upTo]);
  const left = await readHeldRows(db, tableName, { upTo, own: [...own], keys });
  const shown = new Set(keys?.flatMap((key, index) => (isShown(index) ? [keyText(key)] : [])));
  for (const one of left) {
    // Rows that access rules hide must stay hidden. Who knows the position of an event may know that it is missing.
    if (one.key && !shown.has(keyText(one.key)) && !own.has(one.position)) continue;
    const row: HeldRow = { projection: name, version, ...one };
    if (held.refuse) throw rowHeld(row, upTo);
    held.found.push(row);
  }
}

/** `held` is undefined for an operation that demands nothing. */
export function createHeldReads(db: Queryable, held: HeldRows | undefined): HeldReads {
  const demanded = new Map<string, GlobalPosition>();

  async function check(
    projection: Projection,
    keys: readonly RowKey[] | null,
    rows: readonly unknown[],
  ): Promise<void> {
    const upTo = demanded.get(projection.id);
    if (!held || upTo === undefined) return;
    await checkHeld(db, projection, held, { upTo, keys, isShown: (index) => Boolean(rows[index]) });
  }

  return {
    demand(projection, position) {
      demanded.set(projection.id, laterPosition(demanded.get(projection.id) ?? position, position));
    },
    checked(reads) {
      if (!held) return reads;
      const rows = wrapReads(reads, async ({ versions: [projection, ...others], keys }, read) => {
        const found = await read();
        await check(projection, keys, Array.isArray(found) ? found : []);
        // Which rows match depends on these, too.
        for (const other of others) await check(other, null, []);
        return found;
      });
      return {
        ...reads,
        ...rows,
        async history(...given) {
          const [projection, key] = given;
          const versions = await reads.history(...given);
          await check(projection, [key], [versions.at(-1)?.row]);
          return versions;
        },
      };
    },
  };
}

function rowHeld({ projection, version, key, position, reason }: HeldRow, upTo: GlobalPosition): RefoldError {
  const what = key ? `The row ${keyText(key)}` : 'A row';
  const why = reason === 'SKIPPED' ? 'the event was skipped' : 'it waits for a dead letter';
  const problem = `${what} of ${projection}@${version} does not include position ${upTo}: ${why}, at ${position}.`;
  return new RefoldError('ROW_HELD', `${problem} Ask without 'refold-held' to get it as it is.`, {
    projection,
    version,
    ...(key ? { key } : {}),
    position: position.toString(),
    reason,
  });
}
