import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure, sqlFoldFailed } from '../../projections/fold/fold-failures.ts';
import type { FoldFailure, Projection } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import { insertChanges } from '../../store/processors/changes.ts';
import { addWork, advanceCheckpoint } from '../../store/processors/checkpoints.ts';
import { recordSkips } from '../../store/processors/left-out.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { createSetMerge, type SetMerge } from '../../store/tables/sql-fold.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { callOnSkip, EventRetries, OnSkipFailed } from '../dead-letters/event-retries.ts';
import { logSkips } from '../dead-letters/skips.ts';
import { bisectFailures, upToUnreadable } from './bisect-failures.ts';
import { type Completion, createCompletion } from './completion.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';
import type { ProjectionProcessorOptions } from './projection-processor.ts';
import { createPruning } from './pruning.ts';
import { upcastEvents } from './upcast-events.ts';

export interface SetBasedProcessorOptions extends ProjectionProcessorOptions {
  readonly fold: SqlFold;
  readonly log: EventLog;
}

// Positions of a batch. Large during a build, which would otherwise write the same rows many times. Larger batches gain little, and a crash or a
// stop loses up to one batch. At the head, every process with subscribers reads a batch's whole list of changed keys, so it must be short.
const largestBatch = { building: 100_000n, live: 5_000n };
// Events to be upcast are loaded into this process, so these batches are smaller.
const largestUpcastBatch = 5_000n;

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
  readonly #completion: Completion;
  readonly #prune: () => Promise<void>;
  readonly #retries: EventRetries;
  #state: VersionState;
  /** Everything up to here is written. */
  #written: GlobalPosition;
  /** Skipped in a transaction that may not have committed yet. */
  readonly #unlogged: FoldFailure[] = [];
  #interrupted = false;

  constructor(options: SetBasedProcessorOptions) {
    const { db, log, projection, claim, fold, readSchema, state } = options;
    this.id = projection.id;
    this.checkpoint = claim.checkpoint;
    this.#options = options;
    this.#merge = createSetMerge(projection, fold, qualified(readSchema, projection.tableName));
    this.#completion = createCompletion(projection, log);
    this.#prune = createPruning(db, claim);
    this.#retries = new EventRetries(options);
    this.#state = state;
    this.#written = claim.checkpoint;
  }

  async process(page: EventPage): Promise<'continue' | 'stop'> {
    const atHead = page.upTo >= page.horizon;
    // A shared reading has smaller pages. Collect many of them into one batch.
    if (!atHead && this.#state === 'building' && page.upTo - this.#written < this.#batchSize) return 'continue';
    while (this.#written < page.upTo) {
      if (this.#interrupted) return 'stop';
      const end = earlierPosition(globalPosition(this.#written + this.#batchSize), page.upTo);
      const unread = await upToUnreadable(end, (to) => this.#foldUpTo(to));
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

  async #complete(goal: GlobalPosition): Promise<'continue' | 'stop'> {
    const next = await this.#options.onCaughtUp({
      checkpoint: this.#written,
      goal,
      finish: (tx, _, end) => this.#finish(tx, end),
    });
    logSkips(this.#options.logger, this.id, this.#unlogged.splice(0));
    if (next === 'over') return 'stop';
    this.#state = next;
    return 'continue';
  }

  async #foldUpTo(end: GlobalPosition): Promise<void> {
    const { db, projection, logger } = this.#options;
    await bisectFailures(
      this.#written,
      end,
      async (after, upTo) => {
        const upcast = await this.#upcast(after, upTo);
        await db.transaction((tx) => this.#write(tx, after, upTo, upcast));
        this.#moved(upTo);
      },
      async (position, error) => {
        const failed = await this.#failureAt(position, error);
        if (projection.onError.policy === 'stop') {
          this.failure = failed.error;
          return 'stop';
        }
        const skip = () => db.transaction((tx) => this.#skip(tx, failed));
        await this.#retries.run(position, skip, { only: (one) => one instanceof OnSkipFailed });
        this.#moved(position);
        logSkips(logger, projection.id, [failed]);
        return 'skip';
      },
      this.#retries,
    );
    if (this.#state !== 'building') await this.#prune();
  }

  /** Folds everything up to a position within the caller's transaction. */
  async #finish(tx: Queryable, end: GlobalPosition): Promise<void> {
    await bisectFailures(
      this.#written,
      end,
      async (after, upTo) => {
        const upcast = await this.#upcast(after, upTo);
        await savepoint(tx, () => this.#write(tx, after, upTo, upcast));
      },
      async (position, error) => {
        if (this.#retries.appliesTo(error)) throw this.#retries.outside(error);
        const failed = await this.#failureAt(position, error);
        if (this.#options.projection.onError.policy === 'stop') {
          this.failure = failed.error;
          throw failed.error; // the transaction is the caller's, so only an error can end it
        }
        await this.#skip(tx, failed);
        this.#unlogged.push(failed);
        return 'skip';
      },
    );
  }

  #upcast(after: GlobalPosition, upTo: GlobalPosition): Promise<readonly RecordedEvent[]> {
    return upcastEvents(this.#options.log, this.#merge.upcast, after, upTo);
  }

  #moved(to: GlobalPosition): void {
    this.#written = to;
    this.#options.onWritten?.(to);
  }

  async #write(
    tx: Queryable,
    after: GlobalPosition,
    upTo: GlobalPosition,
    upcast: readonly RecordedEvent[],
  ): Promise<void> {
    const { claim } = this.#options;
    const keys = this.#state !== 'building';
    const since = performance.now();
    // The fence comes first: a former owner fails before it writes anything, and the row lock keeps a new owner from starting in between.
    await advanceCheckpoint(tx, { claim, from: after, to: upTo, events: 0, rows: 0, busyMs: 0 });
    const { events, rows, upserted, deleted } = await this.#merge.run(tx, { after, upTo, upcast }, { keys });
    const busyMs = Math.round(performance.now() - since);
    if (events > 0) await addWork(tx, claim, { events, rows, busyMs });
    if (upserted.length + deleted.length > 0)
      await insertChanges(tx, claim, upTo, `[${upserted.join(',')}]`, `[${deleted.join(',')}]`);
  }

  async #failureAt(position: GlobalPosition, error: unknown): Promise<FoldFailure> {
    const { log, projection } = this.#options;
    const [event] = await log.readAt([position]);
    if (!event) throw error;
    return failureOf(projection, event, error);
  }

  /** Moves the checkpoint past an event that the declared policy skips. */
  async #skip(tx: Queryable, failed: FoldFailure): Promise<void> {
    const { claim, projection } = this.#options;
    const { position } = failed.event;
    const from = globalPosition(position - 1n);
    await advanceCheckpoint(tx, { claim, from, to: position, events: 1, rows: 0, busyMs: 0 });
    await recordSkips(tx, claim, projection.tableName, [failed]);
    await callOnSkip(projection, failed);
  }
}

/** The failure of an event: its upcaster failed, or the database refuses the rows that it leads to. */
function failureOf(projection: Projection, event: RecordedEvent, error: unknown): FoldFailure {
  const failed = isEvolveFailure(error) ? error : sqlFoldFailed(projection, event, refusalOf(projection, error));
  return { event, key: null, error: failed };
}
