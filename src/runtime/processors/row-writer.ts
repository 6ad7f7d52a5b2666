import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { OnSkipFailed } from '../../projections/fold/on-skip.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { EventRetries, isEventFailure } from '../dead-letters/event-retries.ts';
import { type BisectOptions, bisectFailures } from './bisect-failures.ts';
import { createPruning } from './pruning.ts';
import { createRowBatch, type Move, type RowBatch, type RowBatchOptions } from './row-batch.ts';
import type { Poison } from './row-fold.ts';
import { WriteTimes, writeIsDue } from './write-back.ts';

export interface RowWriterOptions extends RowBatchOptions {
  /** Where events are read again after the database refused a row. */
  readonly log: Pick<EventLog, 'readAll' | 'horizon'>;
  /** The version's state when the processor was claimed. */
  readonly state: VersionState;
  /** See {@link BisectOptions}. */
  readonly explain?: BisectOptions['explain'];
  /** Called with each checkpoint after its commit. */
  onWritten?(checkpoint: GlobalPosition): void;
}

/** How a batch is written in parts, after the database refused a row of it. */
interface Parts {
  /** The caller's transaction, if the parts do not commit by themselves. */
  readonly tx?: Queryable;
  write(move: Move): Promise<void>;
  transaction(work: (tx: Queryable) => Promise<void>): Promise<void>;
}

/** Folds events into rows, and writes them with the checkpoint. Writes around events that lead to rows which the database refuses. */
export class RowWriter {
  readonly times = new WriteTimes();
  /** The version's state. */
  state: VersionState;
  /** The event that stops the processor. Everything before it is written. */
  failure: RefoldError | null = null;
  readonly #options: RowWriterOptions;
  readonly #batch: RowBatch;
  readonly #prune: () => Promise<void>;
  readonly #retries: EventRetries;
  #interrupted = false;
  /** Everything up to here is written. */
  #checkpoint: GlobalPosition;
  /** Everything up to here is folded. */
  #reached: GlobalPosition;

  constructor(options: RowWriterOptions) {
    const { db, claim, state } = options;
    this.#options = options;
    this.#batch = createRowBatch(options);
    this.#prune = createPruning(db, claim);
    this.#retries = new EventRetries(options);
    this.state = state;
    this.#checkpoint = claim.checkpoint;
    this.#reached = claim.checkpoint;
  }

  get checkpoint(): GlobalPosition {
    return this.#checkpoint;
  }

  get isDue(): boolean {
    const { sinceMs, tookMs: writeTook } = this.times;
    return writeIsDue({ state: this.state, ...this.#batch.size, sinceMs, writeTook });
  }

  /**
   * Folds a page, or the part of it before an event that stops the processor. Returns that event's failure, or `interrupted` if it did not reach
   * the end of the page for that reason. If folding takes long, it writes what is folded in between: a slow event does not have to wait for
   * the rest of its page.
   */
  async fold({ events, upTo }: EventPage): Promise<Poison | 'interrupted' | null> {
    for (let rest = events; ; ) {
      const since = performance.now();
      const isOver = () => this.#interrupted || performance.now() - since >= longestFold;
      const { poison, early } = await this.#batch.fold(rest, undefined, isOver);
      this.#reached = early ?? (poison ? globalPosition(poison.position - 1n) : upTo);
      if (early !== null && this.#interrupted) return 'interrupted';
      if (early === null && (!poison || !this.#retries.appliesTo(poison.error))) return poison;
      const position = early ?? globalPosition(poison?.position ?? upTo); // one of them is there
      await this.flush();
      if (!this.failure && early === null) await this.#writeAround(position, this.#ownParts);
      this.#reached = this.#checkpoint;
      if (this.failure) return { error: this.failure, position };
      rest = rest.filter((event) => event.position > position);
    }
  }

  /** Writes what is folded. */
  async flush(): Promise<void> {
    if (this.#reached === this.#checkpoint) return;
    const upTo = this.#reached;
    try {
      this.#expectNoRetry();
      await this.#written(upTo, (move) => this.#batch.write(move));
    } catch (error) {
      if (!isEventFailure(error)) throw error;
      this.#batch.revert();
      this.#reached = this.#checkpoint; // also if the rest fails: memory holds nothing beyond it
      await this.#writeAround(upTo, this.#ownParts);
      this.#reached = this.#checkpoint;
    }
    if (this.state !== 'building') await this.#prune();
  }

  /**
   * Folds and writes these events, which reach up to a position, within the caller's transaction; it may be called for several pages. Call
   * `logLeftOut` after its commit.
   */
  async finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void> {
    const { poison } = await this.#batch.fold(events, tx); // which has the rows of the events before
    if (poison) throw this.#retries.outside(poison.error);
    try {
      this.#expectNoRetry();
      // Write even if nothing is left: the fence keeps a former owner from completing a table that another owner has continued.
      await this.#written(upTo, (move) => savepoint(tx, () => this.#batch.writeWithin(tx, move)), tx);
    } catch (error) {
      if (!isEventFailure(error)) throw error;
      this.#batch.revert();
      if (this.#retries.appliesTo(error)) throw this.#retries.outside(error);
      await this.#writeAround(upTo, {
        tx,
        write: (move) => savepoint(tx, () => this.#batch.writeWithin(tx, move)),
        transaction: (work) => savepoint(tx, () => work(tx)),
      });
      if (this.failure) throw this.failure; // the transaction is the caller's, so only an error can end it
    }
  }

  /** Ends a fold at its next turn, and a pause before an event is tried again. The processor must then end. */
  interrupt(): void {
    this.#interrupted = true;
    this.#retries.interrupt();
  }

  /** Logs what was left out of the rows and is not logged yet. */
  logLeftOut(): void {
    this.#batch.logLeftOut();
  }

  /** Parts that commit by themselves. */
  get #ownParts(): Parts {
    return {
      write: (move) => this.#batch.write(move),
      transaction: (work) => this.#options.db.transaction(work),
    };
  }

  /** @throws the error of an event that the policy has left out, if the event is tried again before that */
  #expectNoRetry(): void {
    const again = this.#batch.leftOut.find((error) => this.#retries.appliesTo(error));
    if (again) throw again;
  }

  /**
   * Handles a batch of which the database refused some row. Which events led to that row is unknown. So it folds the events again in
   * smaller and smaller batches, until each event that leads to a refused row is alone.
   */
  async #writeAround(upTo: GlobalPosition, parts: Parts): Promise<void> {
    await bisectFailures(
      this.#checkpoint,
      upTo,
      async (after, to) => {
        try {
          await this.#foldAgain(after, to, parts.tx);
          this.#expectNoRetry();
          await this.#written(to, parts.write, parts.tx);
        } catch (error) {
          this.#batch.revert();
          throw error;
        }
      },
      (position, error) => this.#writeAcceptable(position, error, parts),
      { retries: parts.tx ? undefined : this.#retries, explain: this.#options.explain },
    );
  }

  /** Writes the rows that a single event leads to, except those that the database refuses. */
  async #writeAcceptable(position: GlobalPosition, error: unknown, parts: Parts): Promise<'skip' | 'stop'> {
    const attempt = async () => {
      this.#batch.revert();
      const event = await this.#foldAgain(globalPosition(position - 1n), position, parts.tx);
      if (!event) throw error;
      const write = (move: Move) => parts.transaction((tx) => this.#batch.writeAcceptable(tx, event, move));
      await this.#written(position, write, parts.tx);
    };
    try {
      // The rules have already decided on the event. They may still concern the hook.
      await this.#retries.run(position, attempt, { only: (one) => !parts.tx && one instanceof OnSkipFailed });
      return 'skip';
    } catch (refused) {
      this.#batch.revert();
      if (!isEvolveFailure(refused)) throw refused;
      this.failure = refused;
      return 'stop';
    }
  }

  /** @returns the last event */
  async #foldAgain(from: GlobalPosition, upTo: GlobalPosition, source?: Queryable): Promise<RecordedEvent | undefined> {
    const { log, projection } = this.#options;
    let last: RecordedEvent | undefined;
    for (let after = from; after < upTo; ) {
      const page = await log.readAll({ after, upTo, filter: projection.filter, limit: pageSize });
      const { poison } = await this.#batch.fold(page.events, source);
      if (poison) throw poison.error;
      last = page.events.at(-1) ?? last;
      after = page.upTo;
    }
    return last;
  }

  /** `within`: the caller's transaction, if the write does not commit by itself. */
  async #written(to: GlobalPosition, write: (move: Move) => Promise<void>, within?: Queryable): Promise<void> {
    const start = performance.now();
    const move = this.#moveTo(to);
    await write(move);
    if (!within) await this.#batch.record(move);
    this.#batch.settle(this.state);
    this.#checkpoint = to;
    if (!within) {
      this.#batch.logLeftOut();
      this.#options.onWritten?.(to);
    }
    this.times.wrote(start);
  }

  #moveTo(to: GlobalPosition): Move {
    return { from: this.#checkpoint, to, state: this.state, busyMs: Math.round(this.times.busyMs) };
  }
}

// In milliseconds. What a crash repeats, and how late readers see rows of slow events, is bounded by it and by the slowest event.
const longestFold = 5000;
// A build may have to fold again everything that it keeps in memory, so the pages are large.
const pageSize = 10_000;
