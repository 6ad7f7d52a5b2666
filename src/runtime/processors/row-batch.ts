import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { OnSlowEvent } from '../../events/event-pace.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { rowSizeOf } from '../../projections/columns/row-size.ts';
import { rowRefused } from '../../projections/fold/fold-failures.ts';
import { callOnSkip } from '../../projections/fold/on-skip.ts';
import { keysText, keyText, type Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import {
  advancePartition,
  advanceRebuild,
  noteLeftOut,
  recordBatch,
  type WrittenBatch,
} from '../../store/distributed/partition-checkpoints.ts';
import type { Database } from '../../store/postgres/database.ts';
import { sqlStateOf } from '../../store/postgres/database-errors.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { insertChanges } from '../../store/processors/changes.ts';
import {
  type Advance,
  advanceCheckpoint,
  expectClaim,
  type ProcessorClaim,
} from '../../store/processors/checkpoints.ts';
import { insertDeadLetters } from '../../store/processors/dead-letters.ts';
import { recordSkips } from '../../store/processors/left-out.ts';
import { shareState } from '../../store/registry/registry.ts';
import { isDistributed } from '../../store/statements/placed.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { maxPageBytes } from '../../store/statements/within-bytes.ts';
import { createReadTable, type ReadTable } from '../../store/tables/read-table.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { expectOrder, writeAcceptable } from '../../store/tables/write-rows.ts';
import { type Folded, RowFold } from './row-fold.ts';
import type { Unwritten } from './write-back.ts';

export interface RowBatchOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  /** Freezes rows and events, so an impure `evolve` fails at its own line. */
  readonly freeze: boolean;
  readonly logger: Logger;
  readonly onSlowEvent?: OnSlowEvent | undefined;
}

/** How a write moves the checkpoint. */
export interface Move {
  readonly from: GlobalPosition;
  readonly to: GlobalPosition;
  readonly state: VersionState;
  /** The processing time, for the run log. */
  readonly busyMs: number;
}

/** Events that are folded and not yet written, on top of the rows that memory holds. */
export interface RowBatch {
  readonly size: Pick<Unwritten, 'events' | 'rows' | 'bytes' | 'leftOut'>;
  /**
   * Folds events in order. With the policy `stop` it folds up to a failing event and returns that failure; with other policies it folds around it.
   *
   * @param source where to read rows that memory does not hold. Pass the transaction if it holds the previous batch, not yet committed.
   * @param isOver asked at each turn of the event loop whether to end early; at least one event is folded
   */
  fold(events: readonly RecordedEvent[], source?: Queryable, isOver?: () => boolean): Promise<Folded>;
  /** The errors of the events that the policy has left out of the folded rows. */
  readonly leftOut: readonly RefoldError[];
  /** Writes the folded rows and moves the checkpoint, in its own transaction or statement. */
  write(move: Move): Promise<void>;
  /** Like {@link write}, within the caller's transaction. */
  writeWithin(tx: Queryable, move: Move): Promise<void>;
  /** Writes the rows that one event leads to, except those that the database refuses. @throws RefoldError `EVOLVE_FAILED` with the policy `stop` */
  writeAcceptable(tx: Queryable, event: RecordedEvent, move: Move): Promise<void>;
  /** Call it after the commit of the folded rows. Records them in the registry, if that is on another worker of a Citus cluster than the rows. */
  record(move: Move): Promise<void>;
  /** Call it after the folded rows are written. */
  settle(state: VersionState): void;
  /** Logs what was left out of the rows up to the last {@link settle}. Call it after the commit. */
  logLeftOut(): void;
  /** Discards what is folded: memory again equals the table. */
  revert(): void;
}

// With fewer rows, the prepared statement is as fast as COPY.
const leastToCopy = 500;

export function createRowBatch(options: RowBatchOptions): RowBatch {
  return new FoldedRows(options);
}

class FoldedRows implements RowBatch {
  readonly #options: RowBatchOptions;
  readonly #table: ReadTable;
  readonly #rows: RowFold;
  /** Whether the rows are distributed over the workers of a Citus cluster. A rebuild's batches write to several of them. */
  readonly #isDistributed: boolean;
  /** A batch whose rows are on another worker than the registry, until it is recorded there. */
  #unrecorded: WrittenBatch | undefined;
  /** Rows that memory takes for new are new, unless something else has written to the table. In that case COPY fails and an upsert succeeds. */
  #mayCopy = true;

  constructor(options: RowBatchOptions) {
    this.#options = options;
    this.#table = createReadTable(options.projection, options.readSchema);
    this.#rows = new RowFold({ ...options, table: this.#table });
    this.#isDistributed = isDistributed(options.db, options.projection);
  }

  get size() {
    const { events, cache, failures } = this.#rows;
    return { events, rows: cache.changed, bytes: cache.bytes + failures.bytes, leftOut: failures.count };
  }

  get leftOut(): readonly RefoldError[] {
    return this.#rows.failures.errors;
  }

  fold(
    events: readonly RecordedEvent[],
    source: Queryable = this.#options.db,
    isOver?: () => boolean,
  ): Promise<Folded> {
    return this.#rows.fold(events, source, isOver);
  }

  async write(move: Move): Promise<void> {
    const { db } = this.#options;
    if (await this.#writeAtOnce(move)) return;
    try {
      await db.transaction((tx) => this.#writeAll(tx, move, this.#mayCopy ? tx : undefined));
    } catch (error) {
      if (!this.#mayCopy || !this.#isSecondKey(error)) throw error;
      this.#mayCopy = false;
      await db.transaction((tx) => this.#writeAll(tx, move));
    }
  }

  writeWithin(tx: Queryable, move: Move): Promise<void> {
    return this.#writeAll(tx, move);
  }

  async writeAcceptable(tx: Queryable, event: RecordedEvent, move: Move): Promise<void> {
    const { projection } = this.#options;
    const { cache } = this.#rows;
    const state = await this.#stateNow(tx, move);
    await this.#advance(tx, move, cache.changed, true);
    const refused = await writeAcceptable(tx, this.#table, cache.changedRows());
    this.#rows.refuse(
      refused.map(({ key, error }) => ({
        event,
        key,
        error: rowRefused(projection, event, key, refusalOf(projection, error)),
      })),
    );
    await this.#publish(tx, move, state);
  }

  async record({ state }: Move): Promise<void> {
    if (!this.#unrecorded) return;
    await recordBatch(this.#options.db, this.#unrecorded, state, this.#changedKeys());
    this.#unrecorded = undefined;
  }

  settle(state: VersionState): void {
    this.#rows.settle(state);
  }

  logLeftOut(): void {
    this.#rows.logLeftOut();
  }

  revert(): void {
    this.#rows.revert();
  }

  #isSecondKey(error: unknown): boolean {
    return sqlStateOf(error) === uniqueViolation && refusalOf(this.#options.projection, error).column === undefined;
  }

  /** The usual batch of a served version sets a few rows. It is written as one statement: one round trip instead of five. */
  async #writeAtOnce(move: Move): Promise<boolean> {
    const { db } = this.#options;
    const { cache, failures } = this.#rows;
    if (move.state === 'building' || !failures.isEmpty || this.#isDistributed) return false;
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    if (deletedKeys.length > 0 || inserted.length >= leastToCopy) return false;
    if (upsertedKeys.length === 0) {
      await advanceCheckpoint(db, this.#advanceBy(move, 0));
      return true;
    }
    const rows = this.#table.along([...inserted, ...updated], keysText(upsertedKeys));
    if (!rows) return false;
    await advanceCheckpoint(db, this.#advanceBy(move, upsertedKeys.length), rows);
    return true;
  }

  #advanceBy({ from, to, busyMs }: Move, rows: number): Advance {
    return { claim: this.#options.claim, from, to, events: this.#rows.events, rows, busyMs };
  }

  /** `copying`: the same transaction, if new rows may be written by COPY. */
  async #writeAll(tx: Queryable, move: Move, copying?: Pick<Transaction, 'copyInto' | 'elsewhere'>): Promise<void> {
    const table = this.#table;
    const { cache, claims } = this.#rows;
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    const state = await this.#stateNow(tx, move);
    // The fence comes first: a former owner fails before it writes anything, and the row lock keeps a new owner from starting in between.
    await this.#advance(tx, move, upsertedKeys.length + deletedKeys.length, !this.#rows.failures.isEmpty);
    await expectOrder(tx, table, claims);
    const copied = copying && inserted.length >= leastToCopy;
    const upserted = copied ? updated : [...inserted, ...updated];
    // Delete before upsert: a unique value may move between rows.
    if (deletedKeys.length > 0) await table.remove(tx, deletedKeys);
    if (upserted.length > 0) await table.vacate(tx, upserted);
    if (copied) await table.insert(copying, inserted);
    if (upserted.length > 0) for (const part of this.#parts(upserted)) await table.upsert(tx, part);
    await this.#publish(tx, move, state);
  }

  /** Parts of the rows that one statement takes each, because its text holds them all. Usual rows are one part. */
  #parts(rows: readonly Row[]): readonly (readonly Row[])[] {
    if (this.#rows.cache.bytes <= maxPageBytes) return [rows];
    const sizeOf = rowSizeOf(this.#options.projection.columns);
    let bytes = 0;
    const partOf = (row: Row) => {
      bytes += sizeOf(row);
      return Math.floor(bytes / maxPageBytes);
    };
    return [...Map.groupBy(rows, partOf).values()];
  }

  get #isApart(): boolean {
    return this.#isDistributed && this.#options.claim.kind === 'processor';
  }

  /** @param leavesOut whether the batch may also write dead letters or skips, which are on the worker of the registry */
  async #advance(tx: Queryable, move: Move, rows: number, leavesOut: boolean): Promise<void> {
    const { claim, projection } = this.#options;
    const advance = this.#advanceBy(move, rows);
    if (this.#isApart) {
      // Also a fence there: the next owner must wait until both workers have committed.
      if (leavesOut) await expectClaim(tx, claim);
      const changed = move.state === 'building' ? null : this.#changedKeys();
      this.#unrecorded = await advancePartition(tx, projection.tableName, advance, changed);
      return;
    }
    await advanceCheckpoint(tx, advance);
    if (this.#isDistributed) await advanceRebuild(tx, projection, advance);
  }

  #changedKeys() {
    const { upsertedKeys, deletedKeys } = this.#rows.cache.changes();
    return { upserted: keysText(upsertedKeys), deleted: keysText(deletedKeys) };
  }

  /** The owner of another partition may have completed the version meanwhile. Then this batch's changes must be published to subscribers. */
  async #stateNow(tx: Queryable, { state }: Move): Promise<VersionState> {
    const { claim } = this.#options;
    return state === 'building' && claim.partitions > 1 && !this.#isApart
      ? ((await shareState(tx, claim)) ?? state)
      : state;
  }

  /** Writes what belongs to the rows: the events left out of them, and the list of changed keys. */
  async #publish(tx: Queryable, move: Move, state: VersionState): Promise<void> {
    const { projection, claim } = this.#options;
    const { letters, skipped } = this.#rows.failures;
    if (letters.length > 0) await insertDeadLetters(tx, projection, letters);
    if (skipped.length > 0) await recordSkips(tx, claim, projection.tableName, skipped);
    const leftOut = [
      ...letters,
      ...skipped.map(({ event, key }) => ({ position: event.position, key: key && keyText(key) })),
    ].at(-1);
    if (this.#isApart && leftOut) await noteLeftOut(tx, claim, projection.tableName, { ...leftOut, from: move.from });
    const { upsertedKeys, deletedKeys } = this.#rows.cache.changes();
    if (upsertedKeys.length + deletedKeys.length > 0 && state !== 'building' && !this.#isApart)
      await insertChanges(tx, claim, move.to, keysText(upsertedKeys), keysText(deletedKeys));
    // Before the commit, and not for rows that were refused.
    for (const failure of skipped) await callOnSkip(projection, failure);
  }
}

const uniqueViolation = '23505';
