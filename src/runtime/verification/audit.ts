import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { furthest, type Partition } from '../../projections/declaration/partition.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../projections/declaration/projection.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import type { EventLog } from '../../store/event-log.ts';
import { readVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllLeftOut } from '../../store/processors/left-out.ts';
import { readRegistry } from '../../store/registry/registry.ts';
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

export interface AuditOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
  /** Compare about one row of so many; another part each round, all of them in as many rounds. */
  readonly oneOf: number;
  readonly round: bigint;
  /** Share of the time in which it works; it pauses in between. 1 works without a pause. */
  readonly share: number;
  readonly signal: AbortSignal;
  /** After each page of the log; throws to end the audit. */
  onPage?(): Promise<void>;
}

const pageSize = 2_000;

/**
 * Compares a sample of a version's rows with the log, slowly: first the rows are read in one short snapshot, then the log is folded up to
 * where they were, at the pace that `share` leaves. Nothing is kept open meanwhile; memory holds the sample, twice.
 *
 * @returns undefined where the registry does not know the version any more.
 * @throws the signal's reason
 */
export async function auditVersion(options: AuditOptions): Promise<Verification | undefined> {
  const { db, log, readSchema, projection, oneOf, round, share, signal, onPage } = options;
  // One evaluation of its SQL, whatever the number of rows that are compared.
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
    position: sample.beyond.at(-1)?.position ?? sample.position,
    rowsCompared: sample.rows.size,
    differences: differences.length,
    samples: differences.slice(0, samplesKept),
  };
}

interface Sample {
  readonly position: GlobalPosition;
  /** Of a live inline version none: all its rows are at the position, and beyond it where events are. */
  readonly partitions: readonly Partition[];
  /** Events after the position that the rows show, too. */
  readonly beyond: readonly RecordedEvent[];
  readonly rows: ReadonlyMap<string, Row>;
  readonly leftOut: Discarded;
}

/** The chosen rows and the position that they are at. Only the keys of the others are read. */
async function readSample(
  { db, log, readSchema, projection }: Pick<AuditOptions, 'db' | 'log' | 'readSchema' | 'projection'>,
  chosen: (text: string) => boolean,
): Promise<Sample | undefined> {
  // Before the snapshot, so that the snapshot shows all that is at or below it.
  const horizon = await log.horizon();
  return db.transaction(
    async (snapshot) => {
      const found = (await readRegistry(snapshot)).find(
        ({ name, version }) => name === projection.name && version === projection.version,
      );
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
      const beyond = await readVisible(snapshot, log.families, range, projection.filter);
      return { position, partitions: [], beyond, rows, leftOut };
    },
    { isolation: 'repeatable read', readOnly: true },
  );
}
