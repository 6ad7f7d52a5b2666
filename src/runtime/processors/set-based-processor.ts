import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { earlierPosition, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure, sqlFoldFailed } from '../../projections/fold/fold-failures.ts';
import type { FoldFailure, Projection } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { EventLog } from '../../store/event-log.ts';
import { insertChanges } from '../../store/processors/changes.ts';
import { addWork, advanceCheckpoint } from '../../store/processors/checkpoints.ts';
import { recordSkips } from '../../store/processors/left-out.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { createSetMerge } from '../../store/tables/sql-fold.ts';
import type { EventPage } from '../consumers/event-source.ts';
import { logSkips } from '../dead-letters/skips.ts';
import { bisectFailures, upToUnreadable } from './bisect-failures.ts';
import { createCompletion } from './completion.ts';
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
  const { db, projection, claim, log, fold } = options;
  const merge = createSetMerge(projection, fold, qualified(options.readSchema, projection.tableName));
  let state = options.state;
  let checkpoint = claim.checkpoint;
  const prune = createPruning(db, claim);
  const completion = createCompletion(projection);
  let interrupted = false;
  let failure: RefoldError | null = null;

  async function process(page: EventPage): Promise<'continue' | 'stop'> {
    const atHead = page.upTo >= page.horizon;
    // A shared reading has smaller pages. Collect many of them into one batch.
    if (!atHead && state === 'building' && page.upTo - checkpoint < batchSize()) return 'continue';
    while (checkpoint < page.upTo) {
      if (interrupted) return 'stop';
      const unread = await upToUnreadable(batchEnd(page.upTo), foldUpTo);
      failure ??= unread;
      if (failure) return 'stop';
    }
    const goal = state === 'building' ? completion.goal(page) : undefined;
    if (goal !== undefined) {
      const next = await options.onCaughtUp({ checkpoint, goal, finish });
      if (next === 'over') return 'stop';
      state = next;
    }
    return 'continue';
  }

  const batchEnd = (most: GlobalPosition) => earlierPosition(globalPosition(checkpoint + batchSize()), most);
  function batchSize(): bigint {
    return merge.upcast.length > 0 ? largestUpcastBatch : largestBatch[state === 'building' ? 'building' : 'live'];
  }

  async function foldUpTo(end: GlobalPosition): Promise<void> {
    await bisectFailures(
      checkpoint,
      end,
      async (after, upTo) => {
        const upcast = await upcastEvents(log, merge.upcast, after, upTo);
        await db.transaction((tx) => write(tx, after, upTo, upcast));
        moved(upTo);
      },
      async (position, error) => {
        const failed = await failureAt(position, error);
        if (projection.onError.policy === 'stop') {
          failure = failed.error;
          return 'stop';
        }
        await db.transaction((tx) => skip(tx, failed));
        moved(position);
        logSkips(options.logger, projection.id, [failed]);
        return 'skip';
      },
    );
    if (state !== 'building') await prune();
  }

  function moved(to: GlobalPosition): void {
    checkpoint = to;
    options.onWritten?.(to);
  }

  async function write(
    tx: Queryable,
    after: GlobalPosition,
    upTo: GlobalPosition,
    upcast: readonly RecordedEvent[],
  ): Promise<void> {
    const since = performance.now();
    // The fence comes first: a former owner fails before it writes anything, and the row lock keeps a new owner from starting in between.
    await advanceCheckpoint(tx, { claim, from: after, to: upTo, events: 0, rows: 0, busyMs: 0 });
    const { events, rows, upserted, deleted } = await merge.run(
      tx,
      { after, upTo, upcast },
      { keys: state !== 'building' },
    );
    const busyMs = Math.round(performance.now() - since);
    if (events > 0) await addWork(tx, claim, { events, rows, busyMs });
    if (upserted.length + deleted.length > 0)
      await insertChanges(tx, claim, upTo, `[${upserted.join(',')}]`, `[${deleted.join(',')}]`);
  }

  async function finish(tx: Queryable, _: readonly RecordedEvent[], end: GlobalPosition): Promise<void> {
    await bisectFailures(
      checkpoint,
      end,
      async (after, upTo) => {
        const upcast = await upcastEvents(log, merge.upcast, after, upTo);
        await savepoint(tx, () => write(tx, after, upTo, upcast));
      },
      async (position, error) => {
        const failed = await failureAt(position, error);
        if (projection.onError.policy === 'stop') {
          failure = failed.error;
          throw failure; // the transaction is the caller's, so only an error can end it
        }
        await skip(tx, failed);
        return 'skip';
      },
    );
  }

  async function failureAt(position: GlobalPosition, error: unknown): Promise<FoldFailure> {
    const [event] = await log.readAt([position]);
    if (!event) throw error;
    return failureOf(projection, event, error);
  }

  /** Moves the checkpoint past an event that the declared policy skips. */
  async function skip(tx: Queryable, failed: FoldFailure): Promise<void> {
    const { position } = failed.event;
    await advanceCheckpoint(tx, {
      claim,
      from: globalPosition(position - 1n),
      to: position,
      events: 1,
      rows: 0,
      busyMs: 0,
    });
    await recordSkips(tx, claim, projection.tableName, [failed]);
    projection.onError.onSkip?.(failed);
  }

  return {
    id: projection.id,
    // Subscribes to no events: the pages only show how far the log can be read.
    filter: [],
    checkpoint: claim.checkpoint,
    process,
    // No rows are kept in memory between batches.
    flush: async () => {},
    async interrupt() {
      interrupted = true;
    },
    get failure() {
      return failure;
    },
  };
}

/** The failure of an event: its upcaster failed, or the database refuses the rows that it leads to. */
function failureOf(projection: Projection, event: RecordedEvent, error: unknown): FoldFailure {
  const failed = isEvolveFailure(error) ? error : sqlFoldFailed(projection, event, refusalOf(projection, error));
  return { event, key: null, error: failed };
}
