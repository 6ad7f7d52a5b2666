import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import { type GlobalPosition, globalPosition } from '../events/global-position.ts';
import { type FoldStep, fold, foldAround, foldSteps } from '../projections/fold.ts';
import { keyText, type Projection, type RowKey } from '../projections/projection.ts';
import type { VersionState } from '../projections/version-map.ts';
import { advanceCheckpoint, insertChanges, type ProcessorClaim, pruneChanges } from '../store/checkpoints.ts';
import type { Database } from '../store/database.ts';
import { insertDeadLetters, type NewDeadLetter, readBlockedKeys } from '../store/dead-letters.ts';
import { createReadTable } from '../store/read-table.ts';
import type { Queryable } from '../store/statement.ts';
import { letterError } from './dead-letters.ts';
import type { EventPage, Processor } from './event-source.ts';
import { createRowCache, type RowCache } from './row-cache.ts';

export interface ProjectionProcessorOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  /** The version's state when the processor was claimed. */
  readonly state: VersionState;
  /** Freezes rows and events, so that an impure `evolve` fails where it is. */
  readonly freeze: boolean;
  /** Called between two batches when a building table is within its activation's lag; its result is the version's state from then on. */
  onCaughtUp(progress: BuildProgress): Promise<VersionState | 'over'>;
}

/** A table that is as good as complete. */
export interface BuildProgress {
  readonly checkpoint: GlobalPosition;
  /** Folds and writes these events, the next ones up to a position, within a transaction of the caller's: the last step of a rebuild. */
  finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void>;
}

export interface ProjectionProcessor extends Processor {
  /** Why the processor stopped: the event that could not be folded. Everything before it is in the table. */
  readonly failure: RefoldError | null;
  /** Writes what has been folded and not yet written. */
  flush(): Promise<void>;
}

// While far behind, rows stay in memory and are written once for many batches: PostgreSQL writing the same row again and again
// is what a build costs. 100,000 events is where the gain has flattened out; the rows bound the memory, the time what a crash costs.
const writeBack = { events: 100_000, rows: 50_000, milliseconds: 5_000 };
const keptRows = 100_000;
// A list of changes is read whole by every process with subscribers.
const changesPerBatch = 5_000;
const keepChangesMinutes = 15;
const pruneEveryMilliseconds = 60_000;

/**
 * Folds a projection version's events into its read table. Rows, checkpoint and changes of a batch commit together, under the fence
 * of the owner's epoch, so that each event takes effect exactly once whatever is killed when.
 */
export function createProjectionProcessor(options: ProjectionProcessorOptions): ProjectionProcessor {
  const { db, projection, claim, freeze } = options;
  const table = createReadTable(projection, options.readSchema);
  const cache = createRowCache(claim.checkpoint === 0n);
  let state = options.state;
  let checkpoint = claim.checkpoint;
  let reached = claim.checkpoint;
  let unwritten = 0;
  let lastWrite = Date.now();
  let lastPrune = 0;
  let failure: RefoldError | null = null;
  let blocked: Set<string> | undefined;
  let letters: NewDeadLetter[] = [];

  async function process(page: EventPage): Promise<'continue' | 'stop'> {
    const poison = await foldPage(page.events);
    if (poison) {
      reached = globalPosition(poison.position - 1n);
      await flush();
      failure = poison.error;
      return 'stop';
    }
    reached = page.upTo;
    const caughtUp = page.upTo >= page.horizon;
    if (caughtUp || writeIsDue()) await flush();
    if (state === 'building' && page.horizon - checkpoint <= BigInt(projection.activation.maxLag)) {
      if (!caughtUp) await flush();
      const next = await options.onCaughtUp({ checkpoint, finish });
      if (next === 'over') return 'stop';
      state = next;
    }
    return 'continue';
  }

  async function foldPage(events: readonly RecordedEvent[]): Promise<{ error: RefoldError; position: bigint } | null> {
    try {
      await foldEvents(events);
      return null;
    } catch (error) {
      if (!(error instanceof RefoldError) || error.code !== 'EVOLVE_FAILED') throw error;
      const position = BigInt(String(error.fields.position));
      // A key that can't be told is found before anything is folded: fold what comes before it now.
      if (error.fields.part === 'key') await foldEvents(events.filter((event) => event.position < position));
      unwritten++;
      return { error, position };
    }
  }

  async function foldEvents(events: readonly RecordedEvent[]): Promise<void> {
    if (projection.onError.policy === 'stop') {
      const steps = foldSteps(projection, events);
      await load(steps, cache);
      fold(projection, steps, cache, { freeze });
    } else {
      const steps = foldSteps(projection, events, (event, error) => setAside({ event, key: null, error }));
      await load(steps, cache);
      blocked ??= new Set(await readBlockedKeys(db, projection.tableName));
      const block = projection.onError.policy === 'dead-letter';
      for (const { step, error } of foldAround(projection, steps, cache, { freeze, block, blocked })) {
        setAside({ event: step.event, key: step.key, error });
      }
    }
    unwritten += events.length;
  }

  function setAside({
    event,
    key,
    error,
  }: {
    event: RecordedEvent;
    key: RowKey | null;
    error: RefoldError | null;
  }): void {
    if (projection.onError.policy === 'skip') {
      if (error) projection.onError.onSkip?.({ event, key, error });
      return;
    }
    const { position, type, streamId } = event;
    letters.push({ key: key && keyText(key), position, type, streamId, error: error && letterError(error) });
  }

  async function load(steps: readonly FoldStep[], into: RowCache): Promise<void> {
    const missing = into.missing(new Map(steps.map(({ text, key }) => [text, key])));
    if (missing.length === 0) return;
    const rows = await table.load(db, missing);
    const found = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    for (const key of missing) into.learn(keyText(key), key, found.get(keyText(key)) ?? null);
  }

  function writeIsDue(): boolean {
    const rows = state === 'building' ? writeBack.rows : changesPerBatch;
    return (
      unwritten >= writeBack.events ||
      letters.length >= changesPerBatch ||
      cache.changed >= rows ||
      Date.now() - lastWrite >= writeBack.milliseconds
    );
  }

  async function finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void> {
    await foldEvents(events);
    reached = upTo;
    // Also where nothing is left to write: the fence keeps a former owner from completing what another has gone on with.
    await write(tx);
  }

  async function flush(): Promise<void> {
    if (reached === checkpoint) return;
    await db.transaction(write);
    checkpoint = reached;
    unwritten = 0;
    lastWrite = Date.now();
    letters = [];
    cache.written(keptRows);
    if (state !== 'building' && lastWrite - lastPrune > pruneEveryMilliseconds) {
      lastPrune = lastWrite;
      await pruneChanges(db, claim, keepChangesMinutes);
    }
  }

  async function write(tx: Queryable): Promise<void> {
    const { upserted, upsertedKeys, deletedKeys } = cache.changes();
    const rows = upserted.length + deletedKeys.length;
    // The fence first: a former owner finds out before it writes anything, and the row lock keeps a new one from starting in between.
    await advanceCheckpoint(tx, { claim, from: checkpoint, to: reached, events: unwritten, rows });
    if (upserted.length > 0) await table.upsert(tx, upserted);
    if (deletedKeys.length > 0) await table.remove(tx, deletedKeys);
    if (letters.length > 0) await insertDeadLetters(tx, projection, letters);
    if (rows > 0 && state !== 'building')
      await insertChanges(tx, claim, reached, keysJson(upsertedKeys), keysJson(deletedKeys));
  }

  return {
    id: projection.id,
    filter: projection.filter,
    checkpoint: claim.checkpoint,
    process,
    flush,
    get failure() {
      return failure;
    },
  };
}

/** As {@link keyText}, of a list. */
function keysJson(keys: readonly RowKey[]): string {
  return `[${keys.map(keyText).join(',')}]`;
}
