import type { RefoldError } from '../../errors.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { UnwrittenFailures } from '../../store/processors/unwritten-failures.ts';
import { createSetMerge, type SetMerge } from '../../store/set-based/set-merge.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { isTracing } from '../../tracing.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { EventRetries } from '../dead-letters/event-retries.ts';
import { logLeftOut } from '../dead-letters/skips.ts';
import { upToUnreadable } from '../processors/bisect-failures.ts';
import { type Completion, createCompletion } from '../processors/completion.ts';
import type { MaintainedProcessor } from '../processors/maintained-unit.ts';
import type { ProjectionProcessorOptions } from '../processors/projection-processor.ts';
import { createPruning } from '../processors/pruning.ts';
import { tracedFold } from '../processors/traced-fold.ts';
import { SetFold } from './set-fold.ts';

export interface SetBasedProcessorOptions extends ProjectionProcessorOptions {
  readonly fold: SqlFold;
  readonly log: EventLog;
}

// Positions of a batch. Large during a build, which would otherwise write the same rows many times. Larger batches gain little, and a crash or a
// stop loses up to one batch. At the head, every process with subscribers reads a batch's whole list of changed keys, so it must be short.
const largestBatch = { building: 100_000n, live: 5_000n };
// Events to be upcast are loaded into this process, so these batches are smaller.
const largestUpcastBatch = 5_000n;
// Of a batch, to find what has caused it.
const eventsToTrace = 100;

/**
 * Keeps a read table current with `evolveSql`. Each batch is one statement over the log itself, so only events that must be upcast are loaded
 * into this process. Rows, checkpoint and changes commit together under the fence of the owner's epoch, as with `evolve`.
 */
export function createSetBasedProcessor(options: SetBasedProcessorOptions): MaintainedProcessor {
  return new SetBasedProcessor(options);
}

class SetBasedProcessor implements MaintainedProcessor {
  readonly id: string;
  /** Subscribes to no events: the pages only show how far the log can be read. */
  readonly filter = [];
  readonly checkpoint: GlobalPosition;
  failure: RefoldError | null = null;
  readonly #options: SetBasedProcessorOptions;
  readonly #merge: SetMerge;
  readonly #fold: SetFold;
  readonly #completion: Completion;
  readonly #prune: () => Promise<void>;
  readonly #retries: EventRetries;
  #state: VersionState;
  /** Left out in a transaction that may not have committed yet. */
  readonly #unlogged: UnwrittenFailures[] = [];
  #interrupted = false;

  constructor(options: SetBasedProcessorOptions) {
    const { db, log, projection, claim, fold, readSchema, state, explain } = options;
    this.id = claim.partitions === 1 ? projection.id : `${projection.id}/${claim.partition}`;
    this.checkpoint = claim.checkpoint;
    this.#options = options;
    this.#merge = createSetMerge(projection, fold, qualified(readSchema, projection.tableName), db);
    this.#retries = new EventRetries(options);
    this.#fold = new SetFold({ db, log, projection, claim, merge: this.#merge, retries: this.#retries, explain });
    this.#completion = createCompletion(projection, log);
    this.#prune = createPruning(db, claim);
    this.#state = state;
  }

  async process(page: EventPage): Promise<'continue' | 'stop'> {
    const atHead = page.upTo >= page.horizon;
    // A shared reading has smaller pages. Collect many of them into one batch.
    if (!atHead && this.#state === 'building' && page.upTo - this.#fold.written < this.#batchSize) return 'continue';
    while (this.#fold.written < page.upTo) {
      if (this.#interrupted) return 'stop';
      const end = earlierPosition(globalPosition(this.#fold.written + this.#batchSize), page.upTo);
      const fold = () => upToUnreadable(end, (to) => this.#foldUpTo(to));
      const unread = await (isTracing && this.#state !== 'building' ? this.#traced(end, fold) : fold());
      this.failure ??= unread;
      if (this.failure) return 'stop';
    }
    const goal = this.#state === 'building' ? await this.#completion.goal(page) : undefined;
    return goal === undefined ? 'continue' : this.#complete(goal);
  }

  /** No rows are kept in memory between batches. */
  async flush(): Promise<void> {}

  async interrupt(): Promise<void> {
    this.#interrupted = true;
    this.#retries.interrupt();
  }

  get #batchSize(): bigint {
    const { building, live } = largestBatch;
    return this.#merge.upcast.length > 0 ? largestUpcastBatch : this.#state === 'building' ? building : live;
  }

  /** The events stay in the database, so the causes are those of the first events. */
  async #traced<T>(upTo: GlobalPosition, fold: () => Promise<T>): Promise<T> {
    const { log, projection, claim } = this.#options;
    const { events } = await log.readAll({
      after: this.#fold.written,
      upTo,
      filter: projection.filter,
      limit: eventsToTrace,
    });
    return events.length === 0 ? fold() : tracedFold({ claim, events, upTo }, fold);
  }

  async #complete(goal: GlobalPosition): Promise<'continue' | 'stop'> {
    const next = await this.#options.onCaughtUp({
      checkpoint: this.#fold.written,
      goal,
      finish: (tx, _, end) => this.#finish(tx, end),
    });
    for (const leftOut of this.#unlogged.splice(0)) logLeftOut(this.#options.logger, this.id, leftOut);
    if (next === 'over') return 'stop';
    this.#state = next;
    return 'continue';
  }

  async #foldUpTo(end: GlobalPosition): Promise<void> {
    const { db, logger, onWritten } = this.#options;
    const failed = await this.#fold.upTo(end, {
      state: this.#state,
      commits: true,
      part: (work) => db.transaction(work),
      written: (to, leftOut) => {
        onWritten?.(to);
        logLeftOut(logger, this.id, leftOut);
      },
    });
    this.failure ??= failed?.error ?? null;
    if (this.#state !== 'building') await this.#prune();
  }

  /** Folds everything up to a position within the caller's transaction. */
  async #finish(tx: Queryable, end: GlobalPosition): Promise<void> {
    const failed = await this.#fold.upTo(end, {
      state: this.#state,
      commits: false,
      part: (work) => savepoint(tx, () => work(tx)),
      written: (_, leftOut) => void this.#unlogged.push(leftOut),
    });
    if (!failed) return;
    this.failure = failed.error;
    throw failed.error; // the transaction is the caller's, so only an error can end it
  }
}
