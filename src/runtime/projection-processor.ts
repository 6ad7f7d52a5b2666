import type { Logger } from 'pino';
import { RefoldError } from '../errors.ts';
import type { RecordedEvent } from '../events/event.ts';
import { type GlobalPosition, globalPosition } from '../events/global-position.ts';
import { type Discarded, eventsToFold, stepsToFold } from '../projections/discarded.ts';
import { type FoldStep, fold, foldAround, foldSteps } from '../projections/fold.ts';
import { floorOf, partitionOf } from '../projections/partition.ts';
import { keysText, keyText, type Projection, type RowKey } from '../projections/projection.ts';
import type { VersionState } from '../projections/version-map.ts';
import { advanceCheckpoint, insertChanges, type ProcessorClaim } from '../store/checkpoints.ts';
import type { Database, Transaction } from '../store/database.ts';
import { sqlStateOf } from '../store/database-errors.ts';
import { insertDeadLetters, type NewDeadLetter, readBlockedKeys } from '../store/dead-letters.ts';
import { readDiscards } from '../store/discards.ts';
import { createReadTable } from '../store/read-table.ts';
import { shareState } from '../store/registry.ts';
import type { Queryable } from '../store/statement.ts';
import { letterError, tellOfDeadLetters } from './dead-letters.ts';
import type { EventPage } from './event-source.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';
import { createPruning } from './pruning.ts';
import { createRowCache, type RowCache } from './row-cache.ts';
import { rowsToKeep, writeIsDue } from './write-back.ts';

export interface ProjectionProcessorOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  /** The version's state when the processor was claimed. */
  readonly state: VersionState;
  /** Freezes rows and events, so that an impure `evolve` fails where it is. */
  readonly freeze: boolean;
  readonly logger: Logger;
  /** Told of each checkpoint when it has been committed. */
  onWritten?(checkpoint: GlobalPosition): void;
  /** Called between two batches when a building table is within its activation's lag; its result is the version's state from then on. */
  onCaughtUp(progress: BuildProgress): Promise<VersionState | 'over'>;
}

/** A table that is as good as complete. */
export interface BuildProgress {
  readonly checkpoint: GlobalPosition;
  /** How far the log could be read. */
  readonly horizon: GlobalPosition;
  /** Folds and writes these events, the next ones up to a position, within a transaction of the caller's: the last step of a rebuild. */
  finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void>;
}

// Below, the statement that is prepared is as fast.
const leastToCopy = 500;

/**
 * Folds a projection version's events into its read table. Rows, checkpoint and changes of a batch commit together, under the fence
 * of the owner's epoch, so that each event takes effect exactly once whatever is killed when.
 */
export function createProjectionProcessor(options: ProjectionProcessorOptions): MaintainedProcessor {
  const { db, projection, claim, freeze, logger } = options;
  const table = createReadTable(projection, options.readSchema);
  const { partition, partitions, floors } = claim;
  // What of its keys is in the table is known where nothing is: the rows of other partitions are none of its own.
  const cache = createRowCache(claim.checkpoint === 0n && floors.length === 0);
  let state = options.state;
  let checkpoint = claim.checkpoint;
  let reached = claim.checkpoint;
  let unwritten = 0;
  let lastWrite = Date.now();
  let writeTook = 0;
  // What memory takes for new is new, unless somebody else has written to the table: then COPY fails where an upsert does not.
  let mayCopy = true;
  const prune = createPruning(db, claim);
  let failure: RefoldError | null = null;
  let blocked: Set<string> | undefined;
  let discarded: Discarded | undefined;
  let letters: NewDeadLetter[] = [];
  let busyMs = 0;
  let busySince = performance.now();

  async function process(page: EventPage): Promise<'continue' | 'stop'> {
    busySince = performance.now();
    const next = await takeIn(page);
    busyMs += performance.now() - busySince;
    return next;
  }

  async function takeIn(page: EventPage): Promise<'continue' | 'stop'> {
    const poison = await foldPage(page.events);
    if (poison) {
      reached = globalPosition(poison.position - 1n);
      await flush();
      failure = poison.error;
      return 'stop';
    }
    reached = page.upTo;
    const caughtUp = page.upTo >= page.horizon;
    if (caughtUp || isDue()) await flush();
    if (state === 'building' && page.horizon - checkpoint <= BigInt(projection.activation.maxLag)) {
      if (!caughtUp) await flush();
      const next = await options.onCaughtUp({ checkpoint, horizon: page.horizon, finish });
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
      const before = events.filter((event) => event.position < position);
      // A key that can't be told is found before anything is folded: fold what comes before it now.
      if (error.fields.part === 'key') await foldEvents(before);
      else unwritten += before.length;
      return { error, position };
    }
  }

  async function foldEvents(all: readonly RecordedEvent[]): Promise<void> {
    // What is thrown away later raises the epoch, and this processor ends.
    discarded ??= await readDiscards(db, projection.name, projection.version);
    const events = eventsToFold(all, discarded);
    let steps: readonly FoldStep[];
    if (projection.onError.policy === 'stop') {
      steps = ownOf(stepsToFold(foldSteps(projection, events), discarded));
      await load(steps, cache);
      fold(projection, steps, cache, { freeze });
    } else {
      const told = foldSteps(projection, events, (event, error) => {
        // Of all partitions one keeps an event whose rows can't be told.
        if (isOwn({ event, text: '' })) setAside({ event, key: null, error });
      });
      steps = ownOf(stepsToFold(told, discarded));
      await load(steps, cache);
      blocked ??= new Set(await readBlockedKeys(db, projection.tableName));
      const block = projection.onError.policy === 'dead-letter';
      for (const { step, error } of foldAround(projection, steps, cache, { freeze, block, blocked })) {
        setAside({ event: step.event, key: step.key, error });
      }
    }
    // Each partition sees all events, and tells of those with a row of its own.
    unwritten += partitions === 1 ? all.length : new Set(steps.map(({ event }) => event)).size;
  }

  function ownOf(steps: readonly FoldStep[]): readonly FoldStep[] {
    return partitions === 1 && floors.length === 0 ? steps : steps.filter(isOwn);
  }

  /** Whether a row is for this partition to fold, and has not been folded when there was another number of them. */
  function isOwn({ event, text }: Pick<FoldStep, 'event' | 'text'>): boolean {
    if (partitions > 1 && partitionOf(text, partitions) !== partition) return false;
    return floors.length === 0 || event.position > floorOf(text, floors);
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
    const missing = into.missing(steps);
    if (missing.length === 0) return;
    const rows = await table.load(db, missing);
    const found = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    for (const key of missing) into.learn(keyText(key), key, found.get(keyText(key)) ?? null);
  }

  function isDue(): boolean {
    const sinceMs = Date.now() - lastWrite;
    return writeIsDue({ state, events: unwritten, rows: cache.changed, letters: letters.length, sinceMs, writeTook });
  }

  async function finish(tx: Queryable, events: readonly RecordedEvent[], upTo: GlobalPosition): Promise<void> {
    await foldEvents(events);
    reached = upTo;
    // Also where nothing is left to write: the fence keeps a former owner from completing what another has gone on with.
    await write(tx);
  }

  async function flush(): Promise<void> {
    if (reached === checkpoint) return;
    const start = Date.now();
    await writeOrExplain();
    tellOfDeadLetters(logger, projection.id, letters);
    checkpoint = reached;
    options.onWritten?.(checkpoint);
    unwritten = 0;
    busyMs = 0;
    busySince = performance.now();
    lastWrite = Date.now();
    writeTook = lastWrite - start;
    letters = [];
    cache.written(rowsToKeep(state));
    if (state !== 'building') await prune();
  }

  function busyUntilNow(): number {
    return Math.round(busyMs + performance.now() - busySince);
  }

  async function writeAll(): Promise<void> {
    if (await writeAtOnce()) return;
    try {
      await db.transaction((tx) => write(tx, mayCopy ? tx : undefined));
    } catch (error) {
      if (!mayCopy || sqlStateOf(error) !== uniqueViolation) throw error;
      mayCopy = false;
      await db.transaction((tx) => write(tx));
    }
  }

  /** The usual batch of a version that is served, which sets a few rows, is a statement of its own: one round trip instead of five. */
  async function writeAtOnce(): Promise<boolean> {
    if (state === 'building' || letters.length > 0) return false;
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    if (deletedKeys.length > 0 || inserted.length >= leastToCopy) return false;
    const advance = {
      claim,
      from: checkpoint,
      to: reached,
      events: unwritten,
      rows: upsertedKeys.length,
      busyMs: busyUntilNow(),
    };
    if (upsertedKeys.length === 0) await advanceCheckpoint(db, advance);
    else {
      const rows = table.along([...inserted, ...updated], keysText(upsertedKeys));
      if (!rows) return false;
      await advanceCheckpoint(db, advance, rows);
    }
    return true;
  }

  async function writeOrExplain(): Promise<void> {
    try {
      await writeAll();
    } catch (error) {
      if (!(error instanceof RefoldError) || sqlStateOf(error) !== uniqueViolation) throw error;
      // Which of the batch's events did it is not known to the database.
      const problem = `${error.message} Events from position ${checkpoint + 1n} to ${reached} lead to two rows with one value of a column that is declared unique. Declare it with .index(), or have evolve tell them apart.`;
      throw new RefoldError(error.code, problem, error.fields, { cause: error });
    }
  }

  /** `copying`: the same transaction, where new rows may be written by COPY. */
  async function write(tx: Queryable, copying?: Pick<Transaction, 'copyInto'>): Promise<void> {
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    const rows = upsertedKeys.length + deletedKeys.length;
    // Another partition's owner may have completed the version meanwhile: what this batch changes is news to subscribers then.
    if (state === 'building' && partitions > 1) state = (await shareState(tx, claim)) ?? state;
    // The fence first: a former owner finds out before it writes anything, and the row lock keeps a new one from starting in between.
    await advanceCheckpoint(tx, {
      claim,
      from: checkpoint,
      to: reached,
      events: unwritten,
      rows,
      busyMs: busyUntilNow(),
    });
    const copied = copying && inserted.length >= leastToCopy;
    const upserted = copied ? updated : [...inserted, ...updated];
    // What is given up before what is taken: a unique value may be both.
    if (deletedKeys.length > 0) await table.remove(tx, deletedKeys);
    if (upserted.length > 0) await table.vacate(tx, upserted);
    if (copied) await table.insert(copying, inserted);
    if (upserted.length > 0) await table.upsert(tx, upserted);
    if (letters.length > 0) await insertDeadLetters(tx, projection, letters);
    if (rows > 0 && state !== 'building')
      await insertChanges(tx, claim, reached, keysText(upsertedKeys), keysText(deletedKeys));
  }

  return {
    id: partitions === 1 ? projection.id : `${projection.id}/${partition}`,
    filter: projection.filter,
    checkpoint: claim.checkpoint,
    process,
    flush,
    get failure() {
      return failure;
    },
  };
}

const uniqueViolation = '23505';
