import { createHash } from 'node:crypto';
import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { rowSizeOf } from '../../projections/columns/row-size.ts';
import { hiddenText, hidesKey } from '../../projections/declaration/hidden-values.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import type { FoldStep } from '../../projections/fold/fold.ts';
import { foldInTurns, stepsByPolicy } from '../../projections/fold/fold-by-policy.ts';
import { furthest, type Partition, reachedBy } from '../../projections/projection/partition.ts';
import { keyText, type Projection, storedIn } from '../../projections/projection/projection.ts';
import { readVersionOfRows } from '../../store/distributed/partition-checkpoints.ts';
import type { EventLog } from '../../store/event-log.ts';
import { readVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllLeftOut } from '../../store/processors/left-out.ts';
import type { Difference } from '../../store/tables/compare-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { scanTable } from '../../store/tables/table-scan.ts';
import { checkDeclaredTable } from '../versions/expect-version.ts';
import { maxRowBytes, Rounds, rowBytes } from './rounds.ts';
import { verifySetBased } from './verify-set-based.ts';

export type { Difference } from '../../store/tables/compare-tables.ts';

export interface Verification {
  /** The position of table and log. */
  readonly position: GlobalPosition;
  readonly rowsCompared: number;
  readonly differences: number;
  /** The first differences, at most 20. */
  readonly samples: readonly Difference[];
}

export interface VerifyOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
  /**
   * Compare about one row in this many, chosen by key and always the same rows; 1 compares all. A version with `evolveSql` is always
   * compared as a whole, because that happens in the database and needs no memory here.
   * @default 1
   */
  readonly oneOf?: number;
  onProgress?(position: GlobalPosition, of: GlobalPosition): void;
  /** Awaited after each page of the log and of the table, before the next one is read. Throws to end the verification. */
  onPage?(): Promise<void>;
}

export const samplesKept = 20;

/** Hides the keys of rows whose key columns are personal or have an access rule. Use it for logs and status. */
export function withoutHiddenKeys(projection: Projection, found: Verification): Verification {
  if (!hidesKey(projection)) return found;
  return { ...found, samples: found.samples.map((sample) => ({ ...sample, key: hiddenText })) };
}

/**
 * Folds the log again, from the first event of the version up to the version's checkpoint, and compares the result with the table. Memory
 * holds the compared rows, up to an eighth of the heap limit: a larger table is compared in several rounds, each of which reads the log again. The version continues meanwhile: the table is read as of the checkpoint.
 *
 * @throws RefoldError `INVALID_TRANSITION` if the registry does not know the version
 */
export async function verifyVersion({
  db,
  log,
  readSchema,
  projection,
  oneOf = 1,
  onProgress,
  onPage,
}: VerifyOptions): Promise<Verification> {
  // Read before the snapshot, so the snapshot contains everything up to it.
  const horizon = await log.horizon();
  return db.transaction(
    async (snapshot) => {
      const found = await readVersionOfRows(snapshot, projection);
      if (!found)
        throw new RefoldError(
          'INVALID_TRANSITION',
          `${projection.id} is not in the registry; 'refold status' lists the versions.`,
        );
      checkDeclaredTable(projection, found.tableFingerprint);
      const chosen = oneOfSoMany(oneOf);
      const inline = found.inline === 'live' || found.inline === 'leaving';
      // Each row is compared as of its own partition's checkpoint.
      const upTo = inline ? earlierPosition(horizon, found.checkpoint) : globalPosition(furthest(found.partitions));
      // Inline rows commit with their events, so the table also includes visible events above the horizon.
      const range = { after: upTo, upTo: found.checkpoint };
      let position = inline ? upTo : found.checkpoint;
      async function* beyond() {
        for await (const page of readVisible(snapshot, log.families, range, projection.filter)) {
          position = page.at(-1)?.position ?? position;
          yield page;
        }
      }
      const { sqlFold, name, version } = projection;
      const { tableName } = found;
      const progress = async (position: GlobalPosition) => {
        onProgress?.(position, upTo);
        await onPage?.();
      };
      if (sqlFold) {
        const { partitions } = found;
        const again = { snapshot, log, readSchema, projection, fold: sqlFold, tableName, upTo, partitions };
        const { rows, ...outcome } = await verifySetBased({ ...again, samples: samplesKept, onBatch: progress });
        return { position: found.checkpoint, rowsCompared: rows, ...outcome };
      }
      const leftOut = await readAllLeftOut(snapshot, { name, version, tableName });
      const partitions = inline ? [] : found.partitions;
      const stored = storedIn(projection, tableName);
      const { keyOf } = createReadTable(stored, readSchema);
      const differences: Difference[] = [];
      let compared = 0;
      const rounds = new Rounds();
      do {
        const fold = { log, projection, upTo, partitions, chosen, leftOut, rounds, onPage: progress };
        const expected = await foldAgain({ ...fold, beyond: inline ? beyond() : [] });
        for await (const rows of scanTable(snapshot, readSchema, stored)) {
          await onPage?.();
          for (const row of rows) {
            const key = keyText(keyOf(row));
            if (!chosen(key) || !rounds.has(key)) continue;
            compared++;
            differences.push(...compareRow(projection, expected, key, row));
          }
        }
        differences.push(...missingRows(expected));
      } while (rounds.next());
      return {
        position,
        rowsCompared: compared,
        differences: differences.length,
        samples: differences.slice(0, samplesKept),
      };
    },
    // A read-only transaction cannot create the temporary table of a set-based fold.
    { isolation: 'repeatable read', readOnly: projection.sqlFold === null },
  );
}

/** Chooses about one key in so many, always the same ones in the same round. In as many rounds, each key is chosen once. */
export function oneOfSoMany(oneOf: number, round = 0n): (text: string) => boolean {
  if (oneOf === 1) return () => true;
  const wanted = Number(round % BigInt(oneOf));
  return (text) => createHash('md5').update(text).digest().readUInt32BE() % oneOf === wanted;
}

export interface FoldAgainOptions {
  readonly log: EventLog;
  readonly projection: Projection;
  readonly upTo: GlobalPosition;
  /** The position of each row, if partitions are at different positions. @default all rows at `upTo` */
  readonly partitions?: readonly Partition[];
  /** Pages of events after `upTo` to fold too. @default none */
  readonly beyond?: Iterable<readonly RecordedEvent[]> | AsyncIterable<readonly RecordedEvent[]>;
  /** Which rows are folded, by the text of their key. */
  readonly chosen: (text: string) => boolean;
  /** Narrows the round if its rows take too much memory. @default all chosen rows are held */
  readonly rounds?: Rounds;
  /** What the table lacks: dead letters, discarded events, and events skipped because the database refused a row. @default nothing */
  readonly leftOut?: Discarded;
  /** Events per read. @default 10000 */
  readonly pageSize?: number;
  /** Awaited after each page, before the next one is read. */
  readonly onPage?: (position: GlobalPosition) => Promise<void> | void;
}

/** Returns the chosen rows as folded from the log, by the text of their key; null for a deleted row. */
export async function foldAgain(options: FoldAgainOptions): Promise<Map<string, Row | null>> {
  const { log, projection, upTo, partitions = [], beyond = [], chosen, pageSize = 10_000, onPage } = options;
  const { leftOut = new Set(), rounds } = options;
  const rows = new Map<string, Row | null>();
  const sizeOf = rowSizeOf(projection.columns);
  let bytes = 0;
  const memory = {
    get: (text: string) => rows.get(text) ?? null,
    set: (text: string, _: unknown, row: Row | null) => {
      bytes += held(row) - held(rows.get(text));
      rows.set(text, row);
    },
  };
  const together = partitions.every(({ checkpoint }) => checkpoint === upTo);
  const wanted = ({ event, text }: FoldStep) =>
    chosen(text) && rounds?.has(text) !== false && (together || event.position <= reachedBy(text, partitions));
  // Dead letters and skipped events are not in the table either.
  const leaveOut = () => {};
  const blocked = new Set<string>();
  for (let after = projection.startAfter; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter: projection.filter, limit: pageSize });
    await foldEvents(page.events);
    after = page.upTo;
    await onPage?.(after);
  }
  for await (const page of beyond) await foldEvents(page);
  return rows;

  async function foldEvents(found: readonly RecordedEvent[]): Promise<void> {
    const steps = stepsByPolicy(projection, found, leftOut, leaveOut).filter(wanted);
    await foldInTurns(projection, steps, memory, { freeze: false, blocked, leaveOut });
    while (rounds && bytes > maxRowBytes && rows.size > 1) {
      rounds.narrow();
      for (const [text, row] of rows) {
        if (rounds.has(text)) continue;
        bytes -= held(row);
        rows.delete(text);
      }
    }
  }

  function held(row: Row | null | undefined): number {
    return row === undefined ? 0 : rowBytes + (row === null ? 0 : sizeOf(row));
  }
}

/** Compares a row of the table with the expected row, and removes that from `expected`. */
export function compareRow(
  projection: Projection,
  expected: Map<string, Row | null>,
  key: string,
  found: Row,
): Difference[] {
  const should = expected.get(key);
  expected.delete(key);
  if (!should) return [{ key, kind: 'surplus', columns: [] }];
  const columns = differingColumns(projection, should, found);
  return columns.length > 0 ? [{ key, kind: 'different', columns }] : [];
}

/** Returns the expected rows that were not found. */
export function missingRows(expected: ReadonlyMap<string, Row | null>): Difference[] {
  return [...expected].flatMap(([key, row]) => (row ? [{ key, kind: 'missing' as const, columns: [] }] : []));
}

function differingColumns(projection: Projection, expected: Row, found: Row): string[] {
  const { codec, columns } = projection;
  return Object.keys(columns).filter(
    (name) =>
      JSON.stringify(codec.encodeValue(name, expected[name])) !== JSON.stringify(codec.encodeValue(name, found[name])),
  );
}
