import { createHash } from 'node:crypto';
import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { beginning, earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { hiddenText, hidesKey } from '../../projections/declaration/hidden-values.ts';
import { furthest, type Partition, reachedBy } from '../../projections/declaration/partition.ts';
import { keyText, type Projection, storedIn } from '../../projections/declaration/projection.ts';
import { type Discarded, eventsToFold, stepsToFold } from '../../projections/fold/discarded.ts';
import { type FoldStep, fold, foldAround, foldSteps } from '../../projections/fold/fold.ts';
import type { EventLog } from '../../store/event-log.ts';
import { readVisible } from '../../store/log/read-events.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllLeftOut } from '../../store/processors/left-out.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import type { Difference } from '../../store/tables/compare-tables.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { scanTable } from '../../store/tables/table-scan.ts';
import { checkDeclaredTable } from '../versions/expect-version.ts';
import { verifySetBased } from './verify-set-based.ts';

export type { Difference } from '../../store/tables/compare-tables.ts';

export interface Verification {
  /** Both were looked at as of this position. */
  readonly position: GlobalPosition;
  readonly rowsCompared: number;
  readonly differences: number;
  /** The first of them, 20 at most. */
  readonly samples: readonly Difference[];
}

export interface VerifyOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly readSchema: string;
  readonly projection: Projection;
  /**
   * Compare about one row of so many, chosen by its key and always the same ones; 1 compares all. A version with `evolveSql` is
   * compared as a whole, since that is in the database and costs no memory here.
   * @default 1
   */
  readonly oneOf?: number;
  onProgress?(position: GlobalPosition, of: GlobalPosition): void;
  /** Called after each page of the log and of the table; the next one is read when it is done. Throws to end the verification. */
  onPage?(): Promise<void>;
}

export const samplesKept = 20;

/** For logs and status: without the keys of rows whose key columns are personal or have a rule of access. */
export function withoutHiddenKeys(projection: Projection, found: Verification): Verification {
  if (!hidesKey(projection)) return found;
  return { ...found, samples: found.samples.map((sample) => ({ ...sample, key: hiddenText })) };
}

/**
 * Folds the log again, from the first event up to the version's checkpoint, and compares with the table. Memory holds the compared
 * rows, so a large table is verified by a sample. The version goes on meanwhile: the table is read as it was at the checkpoint.
 *
 * @throws RefoldError `INVALID_TRANSITION` where the registry does not know the version
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
  // Before the snapshot, so that the snapshot shows all that is at or below it.
  const horizon = await log.horizon();
  return db.transaction(
    async (snapshot) => {
      const found = (await readRegistry(snapshot)).find(
        ({ name, version }) => name === projection.name && version === projection.version,
      );
      if (!found)
        throw new RefoldError(
          'INVALID_TRANSITION',
          `${projection.id} is not in the registry; 'refold status' lists the versions.`,
        );
      checkDeclaredTable(projection, found.tableFingerprint);
      const chosen = oneOfSoMany(oneOf);
      const inline = found.inline === 'live' || found.inline === 'leaving';
      // Each row is compared as of where its own partition is.
      const upTo = inline ? earlierPosition(horizon, found.checkpoint) : globalPosition(furthest(found.partitions));
      // What commits with the events is there with them, also above the horizon.
      const range = { after: upTo, upTo: found.checkpoint };
      const beyond = inline ? await readVisible(snapshot, log.families, range, projection.filter) : [];
      const { sqlFold, name, version } = projection;
      const { tableName } = found;
      const progress = async (position: GlobalPosition) => {
        onProgress?.(position, upTo);
        await onPage?.();
      };
      if (sqlFold) {
        const again = { snapshot, log, readSchema, projection, fold: sqlFold, tableName, upTo, samples: samplesKept };
        const { rows, ...outcome } = await verifySetBased({ ...again, onBatch: progress });
        return { position: found.checkpoint, rowsCompared: rows, ...outcome };
      }
      const leftOut = await readAllLeftOut(snapshot, { name, version, tableName });
      const expected = await foldAgain({
        log,
        projection,
        upTo,
        beyond,
        partitions: inline ? [] : found.partitions,
        chosen,
        leftOut,
        onPage: progress,
      });
      const stored = storedIn(projection, tableName);
      const { keyOf } = createReadTable(stored, readSchema);
      const differences: Difference[] = [];
      let compared = 0;
      for await (const rows of scanTable(snapshot, readSchema, stored)) {
        await onPage?.();
        for (const row of rows) {
          const key = keyText(keyOf(row));
          if (!chosen(key)) continue;
          compared++;
          differences.push(...compareRow(projection, expected, key, row));
        }
      }
      differences.push(...missingRows(expected));
      return {
        position: inline ? (beyond.at(-1)?.position ?? upTo) : found.checkpoint,
        rowsCompared: compared,
        differences: differences.length,
        samples: differences.slice(0, samplesKept),
      };
    },
    // A transaction that only reads can't make the temporary table of a set-based fold.
    { isolation: 'repeatable read', readOnly: projection.sqlFold === null },
  );
}

/** Chooses about one key of so many, always the same ones in the same round; in as many rounds each is chosen once. */
export function oneOfSoMany(oneOf: number, round = 0n): (text: string) => boolean {
  if (oneOf === 1) return () => true;
  const wanted = Number(round % BigInt(oneOf));
  return (text) => createHash('md5').update(text).digest().readUInt32BE() % oneOf === wanted;
}

export interface FoldAgainOptions {
  readonly log: EventLog;
  readonly projection: Projection;
  readonly upTo: GlobalPosition;
  /** Where each row is to be taken, where partitions are at different positions. @default at `upTo` */
  readonly partitions?: readonly Partition[];
  /** Events after that which are folded, too. @default none */
  readonly beyond?: readonly RecordedEvent[];
  /** Which rows are folded, by the text of their key. */
  readonly chosen: (text: string) => boolean;
  /** What the table lacks: dead letters, what an operator has thrown away, and what the database refused and was skipped. @default nothing */
  readonly leftOut?: Discarded;
  /** Events read at once. @default 10000 */
  readonly pageSize?: number;
  /** Called after each page; the next one is read when it is done. */
  readonly onPage?: (position: GlobalPosition) => Promise<void> | void;
}

/** The chosen rows as the log says they are, by the text of their key; null where a row was removed. */
export async function foldAgain(options: FoldAgainOptions): Promise<Map<string, Row | null>> {
  const { log, projection, upTo, partitions = [], beyond = [], chosen, pageSize = 10_000, onPage } = options;
  const { leftOut = new Set() } = options;
  const rows = new Map<string, Row | null>();
  const memory = {
    get: (text: string) => rows.get(text) ?? null,
    set: (text: string, _: unknown, row: Row | null) => void rows.set(text, row),
  };
  const together = partitions.every(({ checkpoint }) => checkpoint === upTo);
  const wanted = ({ event, text }: FoldStep) =>
    chosen(text) && (together || event.position <= reachedBy(text, partitions));
  const { policy } = projection.onError;
  const blocked = new Set<string>();
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter: projection.filter, limit: pageSize });
    foldEvents(page.events);
    after = page.upTo;
    await onPage?.(after);
  }
  foldEvents(beyond);
  return rows;

  function foldEvents(found: readonly RecordedEvent[]): void {
    const events = eventsToFold(found, leftOut);
    const toFold = (steps: readonly FoldStep[]) => stepsToFold(steps, leftOut).filter(wanted);
    if (policy === 'stop') {
      fold(projection, toFold(foldSteps(projection, events)), memory, { freeze: false });
      return;
    }
    // What the policy sets aside is not in the table either.
    const steps = toFold(foldSteps(projection, events, () => {}));
    foldAround(projection, steps, memory, { freeze: false, block: policy === 'dead-letter', blocked });
  }
}

/** Compares a row of the table with what it should be, and takes that out of what is expected. */
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

/** What is expected and was not found. */
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
