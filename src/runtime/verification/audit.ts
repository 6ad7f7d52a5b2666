import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import { furthest, type Partition } from '../../projections/projection/partition.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../projections/projection/projection.ts';
import { readVersionOfRows } from '../../store/distributed/partition-checkpoints.ts';
import type { EventLog } from '../../store/event-log.ts';
import { readVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllLeftOut } from '../../store/processors/left-out.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { scanTable } from '../../store/tables/table-scan.ts';
import {
  compareRow,
  foldAgain,
  missingRows,
  oneOfSoMany,
  samplesKept,
  type Verification,
  verifyVersion,
} from './verify.ts';

export interface VersionAudit {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
  /** Compare about one row in this many. Each round compares another part; all rows take this many rounds. */
  readonly oneOf: number;
  readonly round: bigint;
  /** The share of time that it works; it pauses in between. 1 means no pause. */
  readonly share: number;
  readonly signal: AbortSignal;
  /** Called after each page of the log. Throws to end the audit. */
  onPage?(): Promise<void>;
}

const pageSize = 2_000;

/**
 * Slowly compares a sample of a version's rows with the log. It first reads the rows in one short snapshot, then folds the log up to their
 * position, at the pace that `share` allows. No transaction stays open meanwhile. Memory holds the sample twice.
 *
 * @returns undefined if the registry no longer knows the version.
 * @throws the signal's reason
 */
export async function auditVersion(options: VersionAudit): Promise<Verification | undefined> {
  const { db, log, readSchema, projection, oneOf, round, share, signal, onPage } = options;
  // Its SQL is evaluated once, however many rows are compared.
  if (projection.sqlFold) return verifyVersion({ db, log, readSchema, projection, ...(onPage ? { onPage } : {}) });
  const chosen = oneOfSoMany(oneOf, round);
  const sample = await readSample(options, chosen);
  if (!sample) return undefined;
  let since = performance.now();
  const expected = await foldAgain({
    log,
    projection,
    upTo: globalPosition(sample.partitions.length > 0 ? furthest(sample.partitions) : sample.position),
    partitions: sample.partitions,
    beyond: sample.beyond,
    chosen,
    leftOut: sample.leftOut,
    pageSize,
    async onPage() {
      await onPage?.();
      await pause(((performance.now() - since) * (1 - share)) / share, undefined, { signal });
      since = performance.now();
    },
  });
  const differences = [...sample.rows].flatMap(([key, row]) => compareRow(projection, expected, key, row));
  differences.push(...missingRows(expected));
  return {
    position: sample.beyond.at(-1)?.at(-1)?.position ?? sample.position,
    rowsCompared: sample.rows.size,
    differences: differences.length,
    samples: differences.slice(0, samplesKept),
  };
}

interface Sample {
  readonly position: GlobalPosition;
  /** Empty for a live inline version: all its rows are at the position, plus the events of `beyond`. */
  readonly partitions: readonly Partition[];
  /** Pages of events after the position that the rows also include. */
  readonly beyond: readonly (readonly RecordedEvent[])[];
  readonly rows: ReadonlyMap<string, Row>;
  readonly leftOut: Discarded;
}

/** Reads the chosen rows and their position. Of other rows only the keys are read. */
async function readSample(
  { db, log, readSchema, projection }: Pick<VersionAudit, 'db' | 'log' | 'readSchema' | 'projection'>,
  chosen: (text: string) => boolean,
): Promise<Sample | undefined> {
  // Read before the snapshot, so the snapshot contains everything up to it.
  const horizon = await log.horizon();
  return db.transaction(
    async (snapshot) => {
      const found = await readVersionOfRows(snapshot, projection);
      if (!found) return undefined;
      const stored = storedIn(projection, found.tableName);
      const { keyOf, load } = createReadTable(stored, readSchema);
      const rows = new Map<string, Row>();
      for await (const page of scanTable(snapshot, readSchema, stored, { columnNames: projection.keyColumns })) {
        const keys: RowKey[] = page.map(keyOf).filter((key) => chosen(keyText(key)));
        if (keys.length === 0) continue;
        for (const row of await load(snapshot, keys)) rows.set(keyText(keyOf(row)), row);
      }
      const leftOut = await readAllLeftOut(snapshot, stored);
      const { checkpoint, partitions } = found;
      if (found.inline === null || found.inline === 'building')
        return { position: checkpoint, partitions, beyond: [], rows, leftOut };
      const position = earlierPosition(horizon, checkpoint);
      const range = { after: position, upTo: checkpoint };
      const beyond: (readonly RecordedEvent[])[] = [];
      for await (const events of readVisible(snapshot, log.families, range, projection.filter)) beyond.push(events);
      return { position, partitions: [], beyond, rows, leftOut };
    },
    { isolation: 'repeatable read', readOnly: true },
  );
}
