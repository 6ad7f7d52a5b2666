import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { EventPace, type OnSlowEvent } from '../../events/event-pace.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import { rowSizeOf } from '../../projections/columns/row-size.ts';
import type { Discarded } from '../../projections/fold/discarded.ts';
import type { FoldStep } from '../../projections/fold/fold.ts';
import { foldByPolicy, type LeftOutEvent, stepsByPolicy } from '../../projections/fold/fold-by-policy.ts';
import { isEvolveFailure, versionUnknownTo } from '../../projections/fold/fold-failures.ts';
import { createUniqueClaims, type UniqueClaims } from '../../projections/fold/unique-claims.ts';
import { floorOf, partitionOf } from '../../projections/projection/partition.ts';
import { type FoldFailure, keyText, type Projection } from '../../projections/projection/projection.ts';
import type { VersionState } from '../../projections/projection/version-map.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import { readBlockedKeys } from '../../store/processors/dead-letters.ts';
import { readDiscardsOf } from '../../store/processors/discards.ts';
import { UnwrittenFailures } from '../../store/processors/unwritten-failures.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { ReadTable } from '../../store/tables/read-table.ts';
import { logLeftOut } from '../dead-letters/skips.ts';
import { createRowCache, type RowCache } from './row-cache.ts';
import { rowsToKeep } from './write-back.ts';

export interface RowFoldOptions {
  readonly db: Database;
  readonly projection: Projection;
  readonly table: ReadTable;
  readonly claim: ProcessorClaim;
  /** Freezes rows and events, so an impure `evolve` fails at its own line. */
  readonly freeze: boolean;
  readonly logger: Logger;
  readonly onSlowEvent?: OnSlowEvent | undefined;
}

/** How a fold ended. */
export interface Folded {
  /** The event at which it ended, with its failure. */
  readonly poison: Poison | null;
  /** The last folded event, if the fold ended early because it was asked to. */
  readonly early: GlobalPosition | null;
}

/** An event that could not be folded, and stops its processor. */
export interface Poison {
  readonly error: RefoldError;
  readonly position: bigint;
}

/** Folds events into rows in memory. Holds what is not written yet: changed rows, and what the policy has left out of them. */
export class RowFold {
  /** Tracks which rows took and released unique values. */
  readonly claims: UniqueClaims | undefined;
  readonly cache: RowCache;
  readonly #options: RowFoldOptions;
  readonly #pace: EventPace;
  /** The keys of rows that wait for a dead letter, once they are read. */
  #blocked: Set<string> | undefined;
  /** Read once: a later discard raises the epoch, and this processor ends. */
  #discarded: Discarded | undefined;
  #events = 0;
  #failures: UnwrittenFailures;
  /** Written, but possibly not committed. */
  #unlogged: UnwrittenFailures[] = [];

  constructor(options: RowFoldOptions) {
    const { projection, claim } = options;
    this.#options = options;
    this.#pace = new EventPace(options.onSlowEvent);
    this.claims = createUniqueClaims(projection.codec, projection.uniqueIndexes);
    // If the table starts empty, memory knows all of the partition's keys: the rows of other partitions have other keys.
    const isEmpty = claim.checkpoint === projection.startAfter && claim.floors.length === 0;
    this.cache = createRowCache(isEmpty, this.claims, rowSizeOf(projection.columns));
    this.#failures = new UnwrittenFailures(projection);
  }

  /** The events that were folded since the last write. */
  get events(): number {
    return this.#events;
  }

  get failures(): UnwrittenFailures {
    return this.#failures;
  }

  /**
   * Folds events in order. With the policy `stop` it folds up to a failing event and returns that failure. With any policy it folds up to an
   * event whose payload version is unknown. The event loop has turns meanwhile.
   *
   * @param isOver asked at each turn whether to end early; at least one event is folded
   */
  async fold(all: readonly RecordedEvent[], source: Queryable, isOver = () => false): Promise<Folded> {
    for (const [index, event] of all.entries()) {
      const unread = unreadable(event);
      if (!isVersionUnknown(unread)) continue;
      const error = versionUnknownTo(this.#options.projection, unread);
      return this.#foldBefore(all.slice(0, index), { error, position: event.position }, source, isOver);
    }
    try {
      return { poison: null, early: await this.#foldAll(all, source, isOver) };
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      const position = BigInt(String(error.fields.position));
      const before = all.filter((event) => event.position < position);
      // A failing key function is found before anything is folded, so fold the events before it now. One of them may fail too.
      if (error.fields.part === 'key') return this.#foldBefore(before, { error, position }, source, isOver);
      this.#events += before.length;
      return { poison: { error, position }, early: null };
    }
  }

  async #foldBefore(
    events: readonly RecordedEvent[],
    poison: Poison,
    source: Queryable,
    isOver: () => boolean,
  ): Promise<Folded> {
    const before = await this.fold(events, source, isOver);
    return before.poison || before.early !== null ? before : { poison, early: null };
  }

  /** Takes back rows that the database refuses, and applies the policy to their event. @throws the first error with the policy `stop` */
  refuse(failures: readonly FoldFailure[]): void {
    const { policy } = this.#options.projection.onError;
    if (policy === 'stop' && failures[0]) throw failures[0].error;
    for (const failure of failures) {
      this.#failures.add(failure);
      if (policy === 'dead-letter') this.#blocked?.add(keyOf(failure));
    }
    this.cache.revert(new Set(failures.map(keyOf)));
  }

  /** Call it when everything is written. */
  settle(state: VersionState): void {
    if (!this.#failures.isEmpty) this.#unlogged.push(this.#failures);
    this.#begin();
    this.cache.written(rowsToKeep(state));
  }

  /** Logs what was left out up to the last {@link settle}. Call it after the commit. */
  logLeftOut(): void {
    const { logger, projection } = this.#options;
    for (const failures of this.#unlogged) logLeftOut(logger, projection.id, failures);
    this.#unlogged = [];
  }

  /** Discards what is not written: memory again equals the table. */
  revert(): void {
    // A row's failed event is its first dead letter, so the row was not blocked before it.
    for (const { key, error } of this.#failures.letters) if (key !== null && error) this.#blocked?.delete(key);
    this.#begin();
    this.cache.revert();
  }

  #begin(): void {
    this.#events = 0;
    this.#failures = new UnwrittenFailures(this.#options.projection);
  }

  /** Returns the last folded event if it ended early. */
  async #foldAll(
    all: readonly RecordedEvent[],
    source: Queryable,
    isOver: () => boolean,
  ): Promise<GlobalPosition | null> {
    const { db, projection, claim, freeze } = this.#options;
    const pace = this.#pace;
    const leaveOut = (leftOut: LeftOutEvent): void => this.#failures.add(leftOut);
    this.#discarded ??= await readDiscardsOf(db, claim);
    const { steps, keyless, upTo } = await this.#steps(all, this.#discarded, isOver);
    await this.#load(steps, source);
    const blocked = await this.#blockedKeys();
    let early = upTo;
    pace.start();
    for (let rest = steps; rest.length > 0; ) {
      const folded = foldByPolicy(projection, rest, this.cache, { freeze, blocked, leaveOut, pace });
      const last = rest[folded - 1]?.event;
      rest = rest.slice(folded);
      if (!last) break;
      if (rest.length === 0) pace.after(last);
      else {
        await pace.turn();
        early = isOver() ? last.position : upTo;
        if (isOver()) break;
      }
    }
    const isFolded = ({ position }: RecordedEvent) => early === null || position <= early;
    for (const leftOut of keyless) if (isFolded(leftOut.event)) leaveOut(leftOut);
    // Each partition reads all events, and counts those with a row of its own.
    const counted = claim.partitions === 1 ? all : [...new Set(steps.map(({ event }) => event))];
    this.#events += early === null ? counted.length : counted.filter(isFolded).length;
    return early;
  }

  /** The steps of the events up to a position; null if there are steps of all. `keyless`: the events whose key failed. */
  async #steps(
    all: readonly RecordedEvent[],
    discarded: Discarded,
    isOver: () => boolean,
  ): Promise<{
    readonly steps: readonly FoldStep[];
    readonly keyless: readonly LeftOutEvent[];
    readonly upTo: GlobalPosition | null;
  }> {
    const { projection } = this.#options;
    const pace = this.#pace;
    const keyless: LeftOutEvent[] = [];
    const withoutKey = (leftOut: LeftOutEvent): void => {
      // Without a key the partition is unknown, so exactly one partition keeps the event.
      if (this.#isOwn({ event: leftOut.event, text: '' })) keyless.push(leftOut);
    };
    const steps: FoldStep[] = [];
    let rest = all;
    let last: GlobalPosition | undefined;
    const onEvent = (event: RecordedEvent): boolean => {
      if (!pace.after(event)) return false;
      last = event.position;
      return true;
    };
    for (;;) {
      pace.start();
      last = undefined;
      const found = this.#ownOf(stepsByPolicy(projection, rest, discarded, withoutKey, onEvent));
      if (last === undefined && rest === all) return { steps: found, keyless, upTo: null };
      for (const step of found) steps.push(step);
      const reached: GlobalPosition | undefined = last;
      if (reached === undefined) return { steps, keyless, upTo: null };
      rest = rest.filter(({ position }) => position > reached);
      await pace.turn();
      if (rest.length > 0 && isOver()) return { steps, keyless, upTo: reached };
    }
  }

  async #blockedKeys(): Promise<Set<string>> {
    const { db, projection } = this.#options;
    const { policy } = projection.onError;
    this.#blocked ??= new Set(policy === 'stop' ? [] : await readBlockedKeys(db, projection.tableName));
    return this.#blocked;
  }

  #ownOf(steps: readonly FoldStep[]): readonly FoldStep[] {
    const { partitions, floors } = this.#options.claim;
    return partitions === 1 && floors.length === 0 ? steps : steps.filter((step) => this.#isOwn(step));
  }

  /** Whether this partition must fold a row: it owns the key, and has not folded the event under an earlier number of partitions. */
  #isOwn({ event, text }: Pick<FoldStep, 'event' | 'text'>): boolean {
    const { partition, partitions, floors } = this.#options.claim;
    return partitionOf(text, partitions) === partition && event.position > floorOf(text, floors);
  }

  async #load(steps: readonly FoldStep[], source: Queryable): Promise<void> {
    const { table } = this.#options;
    const missing = this.cache.missing(steps);
    if (missing.length === 0) return;
    const rows = await table.load(source, missing);
    const found = new Map(rows.map((row) => [keyText(table.keyOf(row)), row]));
    for (const key of missing) this.cache.learn(keyText(key), key, found.get(keyText(key)) ?? null);
  }
}

function keyOf({ key }: FoldFailure): string {
  return key === null ? '' : keyText(key); // a refused row has a key
}
