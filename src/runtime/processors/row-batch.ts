import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { floorOf, partitionOf } from '../../projections/declaration/partition.ts';
import {
  type FoldFailure,
  keysText,
  keyText,
  type Projection,
  type RowKey,
} from '../../projections/declaration/projection.ts';
import type { VersionState } from '../../projections/declaration/version-map.ts';
import { type Discarded, eventsToFold, stepsToFold } from '../../projections/fold/discarded.ts';
import { type FoldStep, fold, foldAround, foldSteps } from '../../projections/fold/fold.ts';
import { isEvolveFailure, rowRefused } from '../../projections/fold/fold-failures.ts';
import { createUniqueClaims } from '../../projections/fold/unique-claims.ts';
import type { Database } from '../../store/postgres/database.ts';
import { sqlStateOf } from '../../store/postgres/database-errors.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { insertChanges } from '../../store/processors/changes.ts';
import { advanceCheckpoint, type ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { insertDeadLetters, type NewDeadLetter, readBlockedKeys } from '../../store/processors/dead-letters.ts';
import { readDiscards } from '../../store/processors/discards.ts';
import { recordSkips } from '../../store/processors/left-out.ts';
import { shareState } from '../../store/registry/registry.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { refusalOf } from '../../store/tables/refused-rows.ts';
import { expectOrder, writeAcceptable } from '../../store/tables/write-rows.ts';
import { letterError, tellOfDeadLetters } from '../dead-letters/dead-letters.ts';
import { tellOfSkips } from '../dead-letters/skips.ts';
import { createRowCache } from './row-cache.ts';
import { rowsToKeep } from './write-back.ts';

export interface RowBatchOptions {
  readonly db: Database;
  readonly readSchema: string;
  readonly projection: Projection;
  readonly claim: ProcessorClaim;
  /** Freezes rows and events, so an impure `evolve` fails at its own line. */
  readonly freeze: boolean;
  readonly logger: Logger;
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
  readonly size: { readonly events: number; readonly rows: number; readonly letters: number };
  /**
   * Folds events in order. With the policy `stop` it folds up to a failing event and returns that failure; with other policies it folds around it.
   *
   * @param source where to read rows that memory does not hold. Pass the transaction if it holds the previous batch, not yet committed.
   */
  fold(events: readonly RecordedEvent[], source?: Queryable): Promise<Poison | null>;
  /** Writes the folded rows and moves the checkpoint, in its own transaction or statement. */
  write(move: Move): Promise<void>;
  /** Like {@link write}, within the caller's transaction. */
  writeWithin(tx: Queryable, move: Move): Promise<void>;
  /** Writes the rows that one event leads to, except those that the database refuses. @throws RefoldError `EVOLVE_FAILED` with the policy `stop` */
  writeAcceptable(tx: Queryable, event: RecordedEvent, move: Move): Promise<void>;
  /** Call it after the folded rows are written and committed. */
  settle(state: VersionState): void;
  /** Discards what is folded: memory again equals the table. */
  revert(): void;
}

export interface Poison {
  readonly error: RefoldError;
  readonly position: bigint;
}

// With fewer rows, the prepared statement is as fast as COPY.
const leastToCopy = 500;

export function createRowBatch(options: RowBatchOptions): RowBatch {
  const { db, projection, claim, freeze, logger } = options;
  const { policy, onSkip } = projection.onError;
  const { partition, partitions, floors } = claim;
  const table = createReadTable(projection, options.readSchema);
  const claims = createUniqueClaims(projection.codec, projection.uniqueIndexes);
  // If the table starts empty, memory knows all of the partition's keys: the rows of other partitions have other keys.
  const cache = createRowCache(claim.checkpoint === 0n && floors.length === 0, claims);
  // Rows that memory takes for new are new, unless something else has written to the table. In that case COPY fails and an upsert succeeds.
  let mayCopy = true;
  let blocked: Set<string> | undefined;
  let discarded: Discarded | undefined;
  let events = 0;
  let letters: NewDeadLetter[] = [];
  let skipped: FoldFailure[] = [];

  async function foldUpToPoison(all: readonly RecordedEvent[], source: Queryable): Promise<Poison | null> {
    try {
      await foldEvents(all, source);
      return null;
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      const position = BigInt(String(error.fields.position));
      const before = all.filter((event) => event.position < position);
      // A failing key function is found before anything is folded, so fold the events before it now.
      if (error.fields.part === 'key') await foldEvents(before, source);
      else events += before.length;
      return { error, position };
    }
  }

  async function foldEvents(all: readonly RecordedEvent[], source: Queryable): Promise<void> {
    // Reading the discards once is enough: a later discard raises the epoch, and this processor ends.
    discarded ??= await readDiscards(db, projection.name, projection.version);
    const found = eventsToFold(all, discarded);
    let steps: readonly FoldStep[];
    if (policy === 'stop') {
      steps = ownOf(stepsToFold(foldSteps(projection, found), discarded));
      await load(steps, source);
      fold(projection, steps, cache, { freeze });
    } else {
      const told = foldSteps(projection, found, (event, error) => {
        // Without a key the partition is unknown, so exactly one partition keeps the event.
        if (isOwn({ event, text: '' })) setAside({ event, key: null, error });
      });
      steps = ownOf(stepsToFold(told, discarded));
      await load(steps, source);
      blocked ??= new Set(await readBlockedKeys(db, projection.tableName));
      const block = policy === 'dead-letter';
      for (const { step, error } of foldAround(projection, steps, cache, { freeze, block, blocked })) {
        setAside({ event: step.event, key: step.key, error });
      }
    }
    // Each partition reads all events, and counts those with a row of its own.
    events += partitions === 1 ? all.length : new Set(steps.map(({ event }) => event)).size;
  }

  function ownOf(steps: readonly FoldStep[]): readonly FoldStep[] {
    return partitions === 1 && floors.length === 0 ? steps : steps.filter(isOwn);
  }

  /** Whether this partition must fold a row: it owns the key, and has not folded the event under an earlier number of partitions. */
  function isOwn({ event, text }: Pick<FoldStep, 'event' | 'text'>): boolean {
    return partitionOf(text, partitions) === partition && event.position > floorOf(text, floors);
  }

  function setAside({ event, key, error }: { event: RecordedEvent; key: RowKey | null; error: RefoldError | null }) {
    if (policy === 'skip') {
      if (error) skipped.push({ event, key, error });
      return;
    }
    const { position, type, streamId } = event;
    letters.push({ key: key && keyText(key), position, type, streamId, error: error && letterError(error) });
  }

  async function load(steps: readonly FoldStep[], source: Queryable): Promise<void> {
    const missing = cache.missing(steps);
    if (missing.length === 0) return;
    const rows = await table.load(source, missing);
    const found = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    for (const key of missing) cache.learn(keyText(key), key, found.get(keyText(key)) ?? null);
  }

  async function write(move: Move): Promise<void> {
    if (await writeAtOnce(move)) return;
    try {
      await db.transaction((tx) => writeAll(tx, move, mayCopy ? tx : undefined));
    } catch (error) {
      if (!mayCopy || !isSecondKey(error)) throw error;
      mayCopy = false;
      await db.transaction((tx) => writeAll(tx, move));
    }
  }

  function isSecondKey(error: unknown): boolean {
    return sqlStateOf(error) === uniqueViolation && refusalOf(projection, error).column === undefined;
  }

  /** The usual batch of a served version sets a few rows. It is written as one statement: one round trip instead of five. */
  async function writeAtOnce(move: Move): Promise<boolean> {
    if (move.state === 'building' || letters.length > 0 || skipped.length > 0) return false;
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    if (deletedKeys.length > 0 || inserted.length >= leastToCopy) return false;
    if (upsertedKeys.length === 0) {
      await advanceCheckpoint(db, advanceBy(move, 0));
      return true;
    }
    const rows = table.along([...inserted, ...updated], keysText(upsertedKeys));
    if (!rows) return false;
    await advanceCheckpoint(db, advanceBy(move, upsertedKeys.length), rows);
    return true;
  }

  function advanceBy({ from, to, busyMs }: Move, rows: number) {
    return { claim, from, to, events, rows, busyMs };
  }

  /** `copying`: the same transaction, if new rows may be written by COPY. */
  async function writeAll(tx: Queryable, move: Move, copying?: Pick<Transaction, 'copyInto'>): Promise<void> {
    const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
    const state = await stateNow(tx, move);
    // The fence comes first: a former owner fails before it writes anything, and the row lock keeps a new owner from starting in between.
    await advanceCheckpoint(tx, advanceBy(move, upsertedKeys.length + deletedKeys.length));
    await expectOrder(tx, table, claims);
    const copied = copying && inserted.length >= leastToCopy;
    const upserted = copied ? updated : [...inserted, ...updated];
    // Delete before upsert: a unique value may move between rows.
    if (deletedKeys.length > 0) await table.remove(tx, deletedKeys);
    if (upserted.length > 0) await table.vacate(tx, upserted);
    if (copied) await table.insert(copying, inserted);
    if (upserted.length > 0) await table.upsert(tx, upserted);
    await publish(tx, move.to, state);
  }

  /** The owner of another partition may have completed the version meanwhile. Then this batch's changes must be published to subscribers. */
  async function stateNow(tx: Queryable, { state }: Move): Promise<VersionState> {
    return state === 'building' && partitions > 1 ? ((await shareState(tx, claim)) ?? state) : state;
  }

  /** Writes what belongs to the rows: the events left out of them, and the list of changed keys. */
  async function publish(tx: Queryable, to: GlobalPosition, state: VersionState): Promise<void> {
    if (letters.length > 0) await insertDeadLetters(tx, projection, letters);
    if (skipped.length > 0) await recordSkips(tx, claim, projection.tableName, skipped);
    const { upsertedKeys, deletedKeys } = cache.changes();
    if (upsertedKeys.length + deletedKeys.length > 0 && state !== 'building')
      await insertChanges(tx, claim, to, keysText(upsertedKeys), keysText(deletedKeys));
    // Before the checkpoint moves, and not for rows that were refused.
    for (const failure of skipped) onSkip?.(failure);
  }

  return {
    get size() {
      return { events, rows: cache.changed, letters: letters.length };
    },
    fold: (all, source = db) => foldUpToPoison(all, source),
    write,
    writeWithin: (tx, move) => writeAll(tx, move),
    async writeAcceptable(tx, event, move) {
      const state = await stateNow(tx, move);
      await advanceCheckpoint(tx, advanceBy(move, cache.changed));
      const refused = await writeAcceptable(tx, table, cache.changedRows());
      const failures = refused.map(({ key, error }) => ({
        event,
        key,
        error: rowRefused(projection, event, key, refusalOf(projection, error)),
      }));
      if (policy === 'stop' && failures[0]) throw failures[0].error;
      for (const failure of failures) {
        setAside(failure);
        if (policy === 'dead-letter') blocked?.add(keyText(failure.key));
      }
      cache.revert(new Set(refused.map(({ key }) => keyText(key))));
      await publish(tx, move.to, state);
    },
    settle(state) {
      tellOfDeadLetters(logger, projection.id, letters);
      tellOfSkips(logger, projection.id, skipped);
      [events, letters, skipped] = [0, [], []];
      cache.written(rowsToKeep(state));
    },
    revert() {
      // A row's failed event is its first dead letter, so the row was not blocked before it.
      for (const { key, error } of letters) if (key !== null && error) blocked?.delete(key);
      [events, letters, skipped] = [0, [], []];
      cache.revert();
    },
  };
}

const uniqueViolation = '23505';
