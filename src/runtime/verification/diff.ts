import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { furthest } from '../../projections/declaration/partition.ts';
import { type Projection, storedIn } from '../../projections/declaration/projection.ts';
import { lastVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { diffTables, type TableDiff } from '../../store/tables/diff-tables.ts';

export interface VersionDiff extends TableDiff {
  /** Both versions were at this position. */
  readonly position: GlobalPosition;
}

// Two versions at the head are at the same position most of the time; a snapshot that finds them apart is taken again.
const tries = 100;
const pauseMilliseconds = 50;

/**
 * Compares what two versions of a projection say, over the columns that both have, at one and the same position.
 *
 * @throws RefoldError `INVALID_TRANSITION` where they have different keys, or are never at the same position (one is still building)
 */
export async function diffVersions(
  db: Database,
  readSchema: string,
  older: Projection,
  newer: Projection,
  sampleSize = 10,
): Promise<VersionDiff> {
  expectSameKeys(older, newer);
  for (let attempt = 1; ; attempt++) {
    const diff = await db.transaction(
      async (snapshot): Promise<VersionDiff | null> => {
        const registered = await readRegistry(snapshot);
        const [a, b] = [older, newer].map((version) => {
          const found = registered.find((entry) => entry.name === version.name && entry.version === version.version);
          if (!found)
            throw new RefoldError(
              'INVALID_TRANSITION',
              `${version.id} is not in the registry; 'refold status' lists the versions.`,
            );
          return found;
        });
        if (!a || !b) return null;
        const position = await samePosition(snapshot, a, b);
        if (position === null) return null;
        const tables = [storedIn(older, a.tableName), storedIn(newer, b.tableName)] as const;
        return { position, ...(await diffTables(snapshot, readSchema, ...tables, sampleSize)) };
      },
      { isolation: 'repeatable read', readOnly: true },
    );
    if (diff) return diff;
    if (attempt === tries) {
      throw new RefoldError(
        'INVALID_TRANSITION',
        `${older.id} and ${newer.id} are not at the same position; compare them when both have caught up ('refold status').`,
      );
    }
    await pause(pauseMilliseconds);
  }
}

/** Where both are in a snapshot; null where they are apart. What appends fold into is where the snapshot's last event is. */
export async function samePosition(
  snapshot: Queryable,
  a: RegisteredVersion,
  b: RegisteredVersion,
): Promise<GlobalPosition | null> {
  const behind = [a, b].filter(({ inline }) => inline !== 'live');
  // Rows of all partitions of both, or what differs may only be further on.
  const positions = new Set(behind.flatMap((entry) => [entry.checkpoint, furthest(entry.partitions)]));
  if (behind.length === 2) return positions.size === 1 ? a.checkpoint : null;
  const last = await lastVisible(snapshot);
  return behind.every(({ checkpoint }) => checkpoint >= last) ? last : null;
}

function expectSameKeys(older: Projection, newer: Projection): void {
  const [a, b] = [older, newer].map(({ keyColumns }) => keyColumns.join(', '));
  if (a !== b)
    throw new RefoldError(
      'INVALID_TRANSITION',
      `${older.id} and ${newer.id} have different keys (${a}; ${b}), so their rows can't be compared.`,
    );
}
