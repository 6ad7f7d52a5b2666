import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { bisectFailures } from './bisect-failures.ts';
import { createCompletion } from './completion.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';
import { createPruning } from './pruning.ts';
import { createRowBatch, type Move } from './row-batch.ts';
import { writeIsDue } from './write-back.ts';

export interface ProjectionProcessorOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  /** Where events are read again after the database refused a row. */
  readonly log: Pick<EventLog, 'readAll'>;
  /** The version's state when the processor was claimed. */
  readonly state: VersionState;
  /** Freezes rows and events, so an impure `evolve` fails at its own line. */
  readonly freeze: boolean;
  readonly logger: Logger;
  /** Called with each checkpoint after its commit. */
  onWritten?(checkpoint: GlobalPosition): void;
  /** Called between two batches when the table of a build is {@link createCompletion complete}. Returns the version's state from then on. */
  onCaughtUp(progress: BuildProgress): Promise<VersionState | 'over'>;
}

/** The progress of a table that is complete up to its goal. */
export interface BuildProgress {
  readonly checkpoint: GlobalPosition;
  /** The head of the log when the table first came near it. All events up to there are folded. */
  readonly goal: GlobalPosition;
  /** Folds and writes these events, which reach up to a position, within the caller's transaction: the last step of a rebuild. */
  finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void>;
}

/**
 * Folds a projection version's events into its read table. Rows, checkpoint and changes of a batch commit together, under the fence
 * of the owner's epoch. Each event therefore takes effect exactly once, whatever process is killed at whatever time.
 */
export function createProjectionProcessor(options: ProjectionProcessorOptions): MaintainedProcessor {
  const { db, projection, claim, log } = options;
  const batch = createRowBatch(options);
  const prune = createPruning(db, claim);
  const completion = createCompletion(projection);
  let state = options.state;
  let checkpoint = claim.checkpoint;
  let reached = claim.checkpoint;
  let lastWrite = performance.now();
  let writeTook = 0;
  let failure: RefoldError | null = null;
  let busyMs = 0;
  let busySince = performance.now();

  async function process(page: EventPage): Promise<'continue' | 'stop'> {
    busySince = performance.now();
    const next = await takeIn(page);
    busyMs += performance.now() - busySince;
    return next;
  }

  async function takeIn(page: EventPage): Promise<'continue' | 'stop'> {
    const poison = await batch.fold(page.events);
    if (poison) {
      reached = globalPosition(poison.position - 1n);
      await flush();
      failure ??= poison.error;
      return 'stop';
    }
    reached = page.upTo;
    const caughtUp = page.upTo >= page.horizon;
    if (caughtUp || isDue()) await flush();
    const goal = state === 'building' && !failure ? completion.goal(page) : undefined;
    if (goal !== undefined) {
      if (!caughtUp) await flush();
      if (failure) return 'stop';
      const next = await options.onCaughtUp({ checkpoint, goal, finish });
      if (next === 'over') return 'stop';
      state = next;
    }
    return failure ? 'stop' : 'continue';
  }

  function isDue(): boolean {
    const sinceMs = performance.now() - lastWrite;
    return writeIsDue({ state, ...batch.size, sinceMs, writeTook });
  }

  async function flush(): Promise<void> {
    if (reached === checkpoint) return;
    const upTo = reached;
    try {
      await written(upTo, () => batch.write(moveTo(upTo)));
    } catch (error) {
      if (!isRowRefusal(error)) throw error;
      batch.revert();
      await writeAround(
        upTo,
        (move) => batch.write(move),
        (work) => db.transaction(work),
      );
      reached = checkpoint;
    }
    if (state !== 'building') await prune();
  }

  /**
   * Handles a batch of which the database refused some row. Which events led to that row is unknown. So it folds the events again in
   * smaller and smaller batches, until each event that leads to a refused row is alone.
   */
  async function writeAround(
    upTo: GlobalPosition,
    write: (move: Move) => Promise<void>,
    transaction: (work: (tx: Queryable) => Promise<void>) => Promise<void>,
    source?: Queryable,
  ): Promise<void> {
    await bisectFailures(
      checkpoint,
      upTo,
      async (after, to) => {
        try {
          await foldAgain(after, to, source);
          await written(to, () => write(moveTo(to)));
        } catch (error) {
          batch.revert();
          throw error;
        }
      },
      async (position, error) => {
        const event = await foldAgain(globalPosition(position - 1n), position, source);
        if (!event) throw error;
        try {
          await written(position, () => transaction((tx) => batch.writeAcceptable(tx, event, moveTo(position))));
          return 'skip';
        } catch (refused) {
          batch.revert();
          if (!isEvolveFailure(refused)) throw refused;
          failure = refused;
          return 'stop';
        }
      },
    );
  }

  /** @returns the last event */
  async function foldAgain(
    from: GlobalPosition,
    upTo: GlobalPosition,
    source?: Queryable,
  ): Promise<RecordedEvent | undefined> {
    let last: RecordedEvent | undefined;
    for (let after = from; after < upTo; ) {
      const page = await log.readAll({ after, upTo, filter: projection.filter, limit: pageSize });
      const poison = await batch.fold(page.events, source);
      if (poison) throw poison.error;
      last = page.events.at(-1) ?? last;
      after = page.upTo;
    }
    return last;
  }

  async function written(to: GlobalPosition, write: () => Promise<void>): Promise<void> {
    const start = performance.now();
    await write();
    batch.settle(state);
    checkpoint = to;
    options.onWritten?.(checkpoint);
    busyMs = 0;
    busySince = performance.now();
    lastWrite = performance.now();
    writeTook = lastWrite - start;
  }

  function moveTo(to: GlobalPosition): Move {
    return { from: checkpoint, to, state, busyMs: Math.round(busyMs + performance.now() - busySince) };
  }

  async function finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void> {
    const poison = await batch.fold(events);
    if (poison) throw poison.error;
    try {
      // Write even if nothing is left: the fence keeps a former owner from completing a table that another owner has continued.
      await savepoint(tx, () => batch.writeWithin(tx, moveTo(upTo)));
    } catch (error) {
      if (!isRowRefusal(error)) throw error;
      batch.revert();
      const part = (work: (tx: Queryable) => Promise<void>) => savepoint(tx, () => work(tx));
      await writeAround(upTo, (move) => part((within) => batch.writeWithin(within, move)), part, tx);
      if (failure) throw failure; // the transaction is the caller's, so only an error can end it
    }
  }

  return {
    id: claim.partitions === 1 ? projection.id : `${projection.id}/${claim.partition}`,
    filter: projection.filter,
    checkpoint: claim.checkpoint,
    process,
    flush,
    get failure() {
      return failure;
    },
  };
}

// A build may have to fold again everything that it keeps in memory, so the pages are large.
const pageSize = 10_000;
