import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { ResponseQuery } from '../../projections/queries/response-query.ts';
import type { HeldRows } from '../../schema/contract/held-rows.ts';
import type { ReadModels } from '../../schema/contract/operation-context.ts';
import type { Database } from '../../store/postgres/database.ts';
import { aggregateRows } from '../../store/queries/aggregate-rows.ts';
import { countRows, findPage } from '../../store/queries/row-queries.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { openReadSnapshot, type ReadSnapshot } from '../../store/server/read-snapshot.ts';
import { readReplayedCheckpoint } from '../../store/server/replica-state.ts';
import { ofOneAnswer } from '../../store/statements/answer-size.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { samePosition } from '../verification/diff.ts';
import { createCompiledReads } from './compiled-reads.ts';
import { followTables, type TableView } from './follow-tables.ts';
import { createHeldReads, type HeldReads } from './held-reads.ts';
import { createKeyLookups } from './key-lookups.ts';
import type { NearReads, OperationReadModels } from './operation-read-models.ts';
import type { Positions } from './positions.ts';
import { createReadPositions, trackedReads } from './read-positions.ts';
import { createRelatedReads } from './related-reads.ts';
import type { Replica } from './replica.ts';
import { readsFromReplica } from './replica-reads.ts';
import type { RowHistory } from './row-history.ts';
import { waitForRows } from './wait-for-rows.ts';

export interface ReadModelsOptions {
  /** The database that holds the read tables, created with a statement timeout for reads outside of a snapshot. */
  readonly db: Database;
  readonly readSchema: string;
  /** The timeout of one statement of a snapshot, in milliseconds. */
  readonly statementTimeout: number;
  readonly positions: Positions;
  readonly versions: TableView;
  readonly history: RowHistory;
  /** A replica that may serve queries instead. */
  readonly replica?: Replica | undefined;
}

/** The reads of a process. Each operation opens its own reads from it. */
export interface ReadModelSource {
  /**
   * With a snapshot, all reads of the operation see one state of the database; the first read takes a connection for it.
   * Without one, each read is a separate statement, and look-ups by key share statements with other operations.
   * The reads use the replica if there is one, its lag is within the limit, and it holds the demanded positions; otherwise the primary.
   */
  open(options: ReadsOptions): OperationReadModels;
  /**
   * Returns the JSON of all root fields with one statement, so the whole answer is from one state of the database. Lookups of a single row
   * share statements. A replica answers as in {@link open}.
   *
   * @param versions the versions that the query reads
   */
  answer(query: ResponseQuery, versions: VersionMap): Promise<string>;
}

export interface ReadsOptions {
  readonly snapshot: boolean;
  /** Whether to report the log positions of the rows read; only with a snapshot. @default false */
  readonly positions?: boolean | undefined;
  /** Whether its parts are answered one after the other, so each may read another store: a mutation. @default false */
  readonly separate?: boolean | undefined;
  /** Records rows that lack an event up to a demanded position, or refuses them. @default nothing is demanded */
  readonly held?: HeldRows | undefined;
  /** The versions that a query reads, if a replica may serve it. @default only the primary may */
  readonly replicaOf?: VersionMap | undefined;
}

export function createReadModels(options: ReadModelsOptions): ReadModelSource {
  const { replica, versions } = options;
  const readsOfPrimary = createReadsOf(options);
  const openNear = replica && createReadsOf({ ...options, db: replica.db });
  const answerNear = replica && compiledReadsOf(replica.db, options);
  const answerOfPrimary = compiledReadsOf(options.db, options);

  function openPrimary(how: ReadsOptions): OperationReadModels {
    return followTables(readsOfPrimary(how), versions, how);
  }

  return {
    open(how) {
      const { replicaOf } = how;
      if (!replica || !openNear || !replicaOf || !replica.accepts(replicaOf)) return openPrimary(how);
      return readsFromReplica(replica, openNear(how), () => openPrimary(how));
    },
    async answer(query, versions) {
      if (!replica || !answerNear || !replica.accepts(versions)) return answerOfPrimary(query);
      try {
        return await answerNear(query);
      } catch (error) {
        replica.blame(error);
        throw error;
      }
    },
  };
}

function compiledReadsOf(db: Database, { readSchema }: ReadModelsOptions) {
  return createCompiledReads(db, readSchema, db.pool.options.max);
}

/** Opens reads of one database. */
function createReadsOf(options: ReadModelsOptions): (how: ReadsOptions) => NearReads {
  const { db, readSchema } = options;
  // One for the process, because it batches the look-ups of concurrent operations.
  const lookups = createKeyLookups({ db, readSchema, send: 'turn' });

  return (how) => {
    if (how.snapshot) return openOperation(options, how);
    const held = createHeldReads(db, how.held);
    const waits = createWaits(db, options.positions, held);
    const reads = ofOneAnswer(db, db.answerSize());
    const related = createRelatedReads(reads, readSchema);
    const models: ReadModels = {
      findByKeys: (projection, keys, columns, where = null) => lookups.find(projection, keys, columns, where),
      findByUnique: (projection, by, values, columns, where = null) =>
        first(lookups.find(projection, [values], columns, where, by)),
      findPage: (projection, query) => findPage(reads, readSchema, projection, query),
      count: (projection, where, upTo) => countRows(db, readSchema, projection, where, upTo),
      findRelated: related.page,
      countRelated: related.count,
      history: options.history,
      aggregate: (projection, query) => aggregateRows(reads, readSchema, projection, query),
      waitFor: waits.waitFor,
      progress: (projection) => options.positions.progress(projection),
    };
    return {
      ...held.checked(models),
      holds: (projection, position) => holds(db, held, projection, position),
      samePosition: async () => null,
      readPositions: async () => [],
      close: async () => waits.end(),
    };
  };
}

/**
 * Whether the version has this table and the position in these reads. False for a position that only an inline version's appends have written: then
 * new reads are opened.
 */
async function holds(
  reads: Queryable,
  held: HeldReads,
  projection: Projection,
  position: GlobalPosition,
): Promise<boolean> {
  const replayed = await readReplayedCheckpoint(reads, projection);
  if (replayed === null || replayed.checkpoint < position) return false;
  if (replayed.leavesOut) held.demand(projection, position);
  return true;
}

function openOperation(
  { db, readSchema, statementTimeout, positions, history }: ReadModelsOptions,
  { positions: withPositions = false, held: heldRows }: ReadsOptions,
): NearReads {
  const open = new Set<Promise<void>>();
  const positioned = withPositions ? createReadPositions(db) : undefined;
  const size = db.answerSize();
  let snapshot: ReadSnapshot | undefined;

  const reads: Queryable = {
    elsewhere: db.elsewhere,
    async query(statement) {
      // Read before the snapshot, so the snapshot contains everything up to it.
      if (positioned && !snapshot) await positioned.begin();
      if (waits.ended) throw ended();
      snapshot ??= openReadSnapshot(db, { statementTimeout });
      return snapshot.query({ ...statement, size });
    },
  };
  const held = createHeldReads(reads, heldRows);
  const waits = createWaits(db, positions, held);
  const lookups = createKeyLookups({ db: reads, readSchema, send: 'operation' });
  const related = createRelatedReads(reads, readSchema);

  function closeSnapshot(): void {
    const closing = snapshot?.close();
    snapshot = undefined;
    if (!closing) return;
    open.add(closing);
    void closing.then(() => open.delete(closing));
  }

  const models: ReadModels = {
    findByKeys: (projection, keys, columns, where = null) => lookups.find(projection, keys, columns, where),
    findByUnique: (projection, by, values, columns, where = null) =>
      first(lookups.find(projection, [values], columns, where, by)),
    findPage: (projection, query) => findPage(reads, readSchema, projection, query),
    count: (projection, where, upTo) => countRows(reads, readSchema, projection, where, upTo),
    findRelated: related.page,
    countRelated: related.count,
    history,
    aggregate: (projection, query) => aggregateRows(reads, readSchema, projection, query),
    async waitFor(projection, position) {
      await waits.waitFor(projection, position);
      // A snapshot from before the wait would lack the awaited position, or show the table half filled.
      if (!snapshot || (await holds(snapshot, held, projection, position))) return;
      await positioned?.take(snapshot);
      closeSnapshot();
    },
    progress: (projection) => positions.progress(projection),
  };
  return {
    ...held.checked(positioned ? trackedReads(models, positioned.note) : models),
    holds: (projection, position) => holds(reads, held, projection, position),
    async samePosition(...versions) {
      const registered = await readRegistry(reads);
      const [a, b] = versions.map((version) =>
        registered.find((entry) => entry.name === version.name && entry.version === version.version),
      );
      return a && b ? samePosition(reads, a, b) : null;
    },
    async readPositions() {
      if (snapshot) await positioned?.take(snapshot);
      return positioned?.taken() ?? [];
    },
    async close() {
      waits.end();
      closeSnapshot();
      await Promise.all(open);
    },
  };
}

async function first<T>(found: Promise<readonly T[]>): Promise<T | null> {
  return (await found)[0] ?? null;
}

/** The waits of one operation, which end with it. The controller is created at the first wait, because few operations wait. */
function createWaits(db: Queryable, positions: Positions, held: HeldReads) {
  let ending: AbortController | undefined;
  let isOver = false;
  return {
    get ended() {
      return isOver;
    },
    async waitFor(projection: Projection, position: GlobalPosition) {
      if (isOver) throw ended();
      ending ??= new AbortController();
      const { id } = projection;
      const there = await waitForRows({ db, positions, signal: ending.signal }, projection, position);
      if (there === 'leaves out') held.demand(projection, position);
      if (there !== 'moved') return;
      const problem = `${id} got another table while this waited for position ${position}. Ask again.`;
      throw new RefoldError('PROJECTION_NOT_READY', problem, { projection: id });
    },
    end() {
      isOver = true;
      ending?.abort(ended());
    },
  };
}

function ended(): Error {
  return new Error('The operation has ended.');
}
