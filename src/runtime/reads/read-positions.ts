import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { ChangeCursor } from '../../projections/queries/change-cursor.ts';
import { readHorizon } from '../../store/log/horizon.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { readRowsPositions } from '../../store/queries/change-feed.ts';

/** Where the rows of one read model were in the log when they were read; a change feed goes on from there. */
export interface ReadPosition extends ChangeCursor {
  /** The projection's name. */
  readonly name: string;
}

/** The positions of what one operation reads, in one snapshot or, where a mutation waits in between, in several. */
export interface ReadPositions {
  /** Comes before each snapshot. */
  begin(): Promise<void>;
  note(projection: Projection): void;
  /** Of what was noted, as this snapshot shows it. */
  take(snapshot: Queryable): Promise<void>;
  /** Of each projection the least, so that the whole answer includes it; undefined where one can't be told. */
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
      // Of a live inline version, what is above the horizon may be there or not.
      const found = await readRowsPositions(
        snapshot,
        wanted.map(({ name, version, mode }) => ({ name, version, upTo: mode === 'inline' ? horizon : null })),
      );
      for (const { name, version, tableName } of wanted) {
        const rows = found.find((one) => one.name === name && one.version === version);
        // Read from a table that has been taken over since: how far it was, nothing tells.
        if (rows?.tableName !== tableName) {
          isUnknown = true;
          continue;
        }
        const { reached: position, anchor, generation } = rows;
        const before = taken.get(name);
        if (!before || position < before.position)
          taken.set(name, { name, position, anchor, rows: { version, generation } });
      }
    },
    taken: () => (isUnknown ? undefined : [...taken.values()]),
  };
}
