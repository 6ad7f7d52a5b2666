import { createHash } from 'node:crypto';
import { RefoldError } from '../errors.ts';
import { beginning, type GlobalPosition } from '../events/global-position.ts';
import { fold, foldAround, foldSteps } from '../projections/fold.ts';
import { keyText, type Projection, storedIn } from '../projections/projection.ts';
import type { Row } from '../projections/row-codec.ts';
import type { Database } from '../store/database.ts';
import type { EventLog } from '../store/event-log.ts';
import { createReadTable } from '../store/read-table.ts';
import { readRegistry } from '../store/registry.ts';
import { scanTable } from '../store/table-scan.ts';

/** A row that is not what the log says. */
export interface Difference {
  /** The row's key as JSON. */
  readonly key: string;
  /** `missing` in the table, `surplus` in the table, or with other values in these columns. */
  readonly kind: 'missing' | 'surplus' | 'different';
  readonly columns: readonly string[];
}

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
  /** Compare about one row of so many, chosen by its key and always the same ones; 1 compares all. @default 1 */
  readonly oneOf?: number;
  onProgress?(position: GlobalPosition, of: GlobalPosition): void;
}

const samplesKept = 20;
const pageSize = 10_000;

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
}: VerifyOptions): Promise<Verification> {
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
      const chosen = (text: string) =>
        oneOf === 1 || createHash('md5').update(text).digest().readUInt32BE() % oneOf === 0;
      const upTo = found.checkpoint;
      const expected = await foldAgain(log, projection, upTo, chosen, onProgress);
      const stored = storedIn(projection, found.tableName);
      const { keyOf } = createReadTable(stored, readSchema);
      const differences: Difference[] = [];
      let compared = 0;
      for await (const rows of scanTable(snapshot, readSchema, stored)) {
        for (const row of rows) {
          const key = keyText(keyOf(row));
          if (!chosen(key)) continue;
          compared++;
          const should = expected.get(key);
          expected.delete(key);
          if (!should) differences.push({ key, kind: 'surplus', columns: [] });
          else {
            const columns = differingColumns(projection, should, row);
            if (columns.length > 0) differences.push({ key, kind: 'different', columns });
          }
        }
      }
      for (const [key, row] of expected) if (row) differences.push({ key, kind: 'missing', columns: [] });
      return {
        position: upTo,
        rowsCompared: compared,
        differences: differences.length,
        samples: differences.slice(0, samplesKept),
      };
    },
    { isolation: 'repeatable read', readOnly: true },
  );
}

async function foldAgain(
  log: EventLog,
  projection: Projection,
  upTo: GlobalPosition,
  chosen: (text: string) => boolean,
  onProgress: VerifyOptions['onProgress'],
): Promise<Map<string, Row | null>> {
  const rows = new Map<string, Row | null>();
  const memory = {
    get: (text: string) => rows.get(text) ?? null,
    set: (text: string, _: unknown, row: Row | null) => void rows.set(text, row),
  };
  const { policy } = projection.onError;
  const blocked = new Set<string>();
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter: projection.filter, limit: pageSize });
    if (policy === 'stop') {
      fold(
        projection,
        foldSteps(projection, page.events).filter(({ text }) => chosen(text)),
        memory,
        { freeze: false },
      );
    } else {
      // What the policy sets aside is not in the table either.
      const steps = foldSteps(projection, page.events, () => {}).filter(({ text }) => chosen(text));
      foldAround(projection, steps, memory, { freeze: false, block: policy === 'dead-letter', blocked });
    }
    after = page.upTo;
    onProgress?.(after, upTo);
  }
  return rows;
}

function differingColumns(projection: Projection, expected: Row, found: Row): string[] {
  const { codec, columns } = projection;
  return Object.keys(columns).filter(
    (name) =>
      JSON.stringify(codec.encodeValue(name, expected[name])) !== JSON.stringify(codec.encodeValue(name, found[name])),
  );
}
