import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { furthest } from '../../projections/projection/partition.ts';
import { type Projection, storedIn } from '../../projections/projection/projection.ts';
import { lastVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { diffTables, type TableDiff } from '../../store/tables/diff-tables.ts';
import { refuseDistributed } from '../versions/expect-version.ts';

export interface VersionDiff extends TableDiff {
  /** The position of both versions. */
  readonly position: GlobalPosition;
}

// Two versions at the head are usually at the same position. If a snapshot finds them apart, take another.
const tries = 100;
const pauseMilliseconds = 50;

/**
 * Compares the rows of two versions of a projection at the same position, over the columns that both have.
 *
 * @throws RefoldError `INVALID_TRANSITION` if they have different keys, or are never at the same position (one is still building)
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
        for (const version of [a, b]) refuseDistributed(snapshot, version, 'a comparison with another version');
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

/** Returns the position of both versions in a snapshot; null if they differ. A live inline version is at the snapshot's last event. */
export async function samePosition(
  snapshot: Queryable,
  a: RegisteredVersion,
  b: RegisteredVersion,
): Promise<GlobalPosition | null> {
  const behind = [a, b].filter(({ inline }) => inline !== 'live');
  // All partitions of both must be at the position. Otherwise rows may differ only because one is further ahead.
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
