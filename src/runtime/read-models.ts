import type { GlobalPosition } from '../events/global-position.ts';
import type { Projection } from '../projections/projection.ts';
import type { ReadModels } from '../schema/operation-context.ts';
import { aggregateRows } from '../store/aggregate-rows.ts';
import type { Database } from '../store/database.ts';
import { openReadSnapshot, type ReadSnapshot } from '../store/read-snapshot.ts';
import { countRows, findPage } from '../store/row-queries.ts';
import type { Queryable } from '../store/statement.ts';
import { readVersionStatus } from '../store/version-positions.ts';
import { createKeyLookups } from './key-lookups.ts';
import type { Positions } from './positions.ts';
import { createRelatedReads } from './related-reads.ts';

export interface ReadModelsOptions {
  /** The database that holds the read tables; made with a statement timeout, for reads outside of a snapshot. */
  readonly db: Database;
  readonly readSchema: string;
  /** How long PostgreSQL may work on one statement of a snapshot, in milliseconds. */
  readonly statementTimeout: number;
  readonly positions: Positions;
}

/** The reads of one operation. Close it when the operation is answered. */
export interface OperationReadModels extends ReadModels {
  /** Gives the snapshot's connection back after the reads that are running, and ends waits. */
  close(): Promise<void>;
}

/** Reads of a process, from which each operation opens its own. */
export interface ReadModelSource {
  /**
   * With a snapshot, all reads of the operation see one state of the database; the first read takes a connection for it.
   * Without, each read is a statement of its own, and look-ups by key share statements with other operations.
   */
  open(options: { readonly snapshot: boolean }): OperationReadModels;
}

export function createReadModels(options: ReadModelsOptions): ReadModelSource {
  const { db, readSchema } = options;
  // One for the process: this is where concurrent operations meet.
  const lookups = createKeyLookups({ db, readSchema, send: 'turn' });

  return {
    open({ snapshot }) {
      if (snapshot) return openOperation(options);
      const waits = createWaits(options.positions);
      const related = createRelatedReads(db, readSchema);
      return {
        findByKeys: (projection, keys, columns) => lookups.find(projection, keys, columns),
        findPage: (projection, query) => findPage(db, readSchema, projection, query),
        count: (projection, where) => countRows(db, readSchema, projection, where),
        findRelated: related.page,
        countRelated: related.count,
        aggregate: (projection, query) => aggregateRows(db, readSchema, projection, query),
        waitFor: waits.waitFor,
        progress: (projection) => options.positions.progress(projection),
        close: async () => waits.end(),
      };
    },
  };
}

function openOperation({ db, readSchema, statementTimeout, positions }: ReadModelsOptions): OperationReadModels {
  const waits = createWaits(positions);
  const open = new Set<Promise<void>>();
  let snapshot: ReadSnapshot | undefined;

  const reads: Queryable = {
    async query(statement) {
      if (waits.ended) throw ended();
      snapshot ??= openReadSnapshot(db, { statementTimeout });
      return snapshot.query(statement);
    },
  };
  const lookups = createKeyLookups({ db: reads, readSchema, send: 'operation' });
  const related = createRelatedReads(reads, readSchema);

  function closeSnapshot(): void {
    const closing = snapshot?.close();
    snapshot = undefined;
    if (!closing) return;
    open.add(closing);
    void closing.then(() => open.delete(closing));
  }

  return {
    findByKeys: (projection, keys, columns) => lookups.find(projection, keys, columns),
    findPage: (projection, query) => findPage(reads, readSchema, projection, query),
    count: (projection, where) => countRows(reads, readSchema, projection, where),
    findRelated: related.page,
    countRelated: related.count,
    aggregate: (projection, query) => aggregateRows(reads, readSchema, projection, query),
    async waitFor(projection, position) {
      await waits.waitFor(projection, position);
      // A snapshot from before the wait would answer without what was waited for.
      if (snapshot && !(await includes(snapshot, projection, position))) closeSnapshot();
    },
    progress: (projection) => positions.progress(projection),
    async close() {
      waits.end();
      closeSnapshot();
      await Promise.all(open);
    },
  };
}

/** The waits of one operation, which end with it. Few operations wait for anything: only those that do pay for a controller. */
function createWaits(positions: Positions) {
  let ending: AbortController | undefined;
  let isOver = false;
  return {
    get ended() {
      return isOver;
    },
    waitFor(projection: Projection, position: GlobalPosition) {
      if (isOver) return Promise.reject(ended());
      ending ??= new AbortController();
      return positions.waitFor(projection, position, { signal: ending.signal });
    },
    end() {
      isOver = true;
      ending?.abort(ended());
    },
  };
}

async function includes(snapshot: Queryable, projection: Projection, position: GlobalPosition): Promise<boolean> {
  const status = await readVersionStatus(snapshot, projection.name, projection.version);
  return (status?.checkpoint ?? 0n) >= position;
}

function ended(): Error {
  return new Error('The operation has ended.');
}
