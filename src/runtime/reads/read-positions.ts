import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { ReadPosition } from '../../projections/queries/change-cursor.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';
import { readHorizon } from '../../store/log/horizon.ts';
import { readRowsPositions } from '../../store/queries/change-feed.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { wrapReads } from './operation-read-models.ts';

/** The positions of what one operation reads, in one snapshot, or in several if a mutation waits in between. */
export interface ReadPositions {
  /** Call it before each snapshot. */
  begin(): Promise<void>;
  note(projection: Projection): void;
  /** Reads the positions of the recorded projections in this snapshot. */
  take(snapshot: Queryable): Promise<void>;
  /** Returns the lowest position of each projection, so the whole response includes it; undefined if one is unknown. */
  taken(): readonly ReadPosition[] | undefined;
}

export function createReadPositions(db: Queryable): ReadPositions {
  const noted = new Set<Projection>();
  const taken = new Map<string, ReadPosition>();
  let isUnknown = false;
  let horizon: GlobalPosition = beginning;

  return {
    async begin() {
      horizon = await readHorizon(db);
    },
    note: (projection) => void noted.add(projection),
    async take(snapshot) {
      if (noted.size === 0) return;
      const wanted = [...noted];
      noted.clear();
      // In a live inline version, rows of events above the horizon may or may not be visible.
      const found = await readRowsPositions(
        snapshot,
        wanted.map(({ name, version, mode }) => ({ name, version, upTo: mode === 'inline' ? horizon : null })),
      );
      for (const { name, version, store, tableName } of wanted) {
        const rows = found.find((one) => one.name === name && one.version === version);
        // The rows were read from a table that has been replaced since, and its position is no longer recorded.
        if (rows?.tableName !== tableName) {
          isUnknown = true;
          continue;
        }
        const { reached: position, anchor, generation } = rows;
        const before = taken.get(name);
        if (!before || position < before.position)
          taken.set(name, { name, store, position, anchor, rows: { version, generation } });
      }
    },
    taken: () => (isUnknown ? undefined : [...taken.values()]),
  };
}

/** Wraps reads and records the versions whose rows they read. The history of a row is folded from the log, so it records none. */
export function trackedReads(reads: ReadModels, note: (projection: Projection) => void): ReadModels {
  const noted = wrapReads(reads, ({ versions }, read) => {
    for (const version of versions) note(version);
    return read();
  });
  return { ...reads, ...noted };
}
