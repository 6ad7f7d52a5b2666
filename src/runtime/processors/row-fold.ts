import type { Logger } from 'pino';
import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
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
   * event whose payload version is unknown.
   */
  async fold(all: readonly RecordedEvent[], source: Queryable): Promise<Poison | null> {
    for (const [index, event] of all.entries()) {
      const unread = unreadable(event);
      if (!isVersionUnknown(unread)) continue;
      const error = versionUnknownTo(this.#options.projection, unread);
      return (await this.fold(all.slice(0, index), source)) ?? { error, position: event.position };
    }
    try {
      await this.#foldAll(all, source);
      return null;
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      const position = BigInt(String(error.fields.position));
      const before = all.filter((event) => event.position < position);
      // A failing key function is found before anything is folded, so fold the events before it now. One of them may fail too.
      if (error.fields.part === 'key') return (await this.fold(before, source)) ?? { error, position };
      this.#events += before.length;
      return { error, position };
    }
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

  async #foldAll(all: readonly RecordedEvent[], source: Queryable): Promise<void> {
    const { db, projection, claim, freeze } = this.#options;
    const leaveOut = (leftOut: LeftOutEvent): void => this.#failures.add(leftOut);
    this.#discarded ??= await readDiscardsOf(db, claim);
    const withoutKey = (leftOut: LeftOutEvent): void => {
      // Without a key the partition is unknown, so exactly one partition keeps the event.
      if (this.#isOwn({ event: leftOut.event, text: '' })) leaveOut(leftOut);
    };
    const steps = this.#ownOf(stepsByPolicy(projection, all, this.#discarded, withoutKey));
    await this.#load(steps, source);
    const blocked = await this.#blockedKeys();
    foldByPolicy(projection, steps, this.cache, { freeze, blocked, leaveOut });
    // Each partition reads all events, and counts those with a row of its own.
    this.#events += claim.partitions === 1 ? all.length : new Set(steps.map(({ event }) => event)).size;
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
