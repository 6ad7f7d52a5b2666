import { laterToken, type PositionToken } from '../../events/position-token.ts';
import { keyText } from '../../projections/projection/projection.ts';
import type { LagReason, RowChange } from '../../schema/contract/change-feed.ts';
import type { FeedQuery } from './feed-watcher.ts';

/** Changes as they were read, one array shared by all equal subscriptions; or the latest change of each row, by the text of its key. */
export type FeedChanges = readonly RowChange[] | Map<string, RowChange>;

/** An update that the consumer has not pulled yet. */
export interface WaitingUpdate {
  readonly reset: boolean;
  readonly lagged: LagReason | null;
  changes: FeedChanges;
  at: PositionToken;
  /** Whether the consumer may resume from this position. */
  readonly complete: boolean;
}

// The keys that a subscriber with a filter holds are tracked up to this many rows. Beyond it, the subscriber receives every change that may
// concern it.
const maxHeld = 1000;

/**
 * What waits for the consumer of a feed, and which rows it has. Changes are merged until it pulls them, so that it receives the latest of each row.
 * A class, because there may be many thousands.
 */
export class FeedOutbox {
  readonly #query: FeedQuery;
  #waiting: WaitingUpdate | undefined;
  /** The keys that the consumer may hold; undefined if unknown. */
  #held: Set<string> | undefined;

  constructor(query: FeedQuery) {
    this.#query = query;
  }

  get isEmpty(): boolean {
    return this.#waiting === undefined;
  }

  /** Replaces what waits. */
  put(update: WaitingUpdate): void {
    this.#waiting = update;
  }

  clear(): void {
    this.#waiting = undefined;
  }

  /** Returns the changes without those of rows that the consumer neither has nor gets. Equal results are the same object. */
  relevant(changes: readonly RowChange[]): readonly RowChange[] {
    if (!this.#held) return changes;
    return those(
      changes,
      changes.map((change) => this.#concerns(change)),
    );
  }

  /** Adds changes to what waits. Returns the number of rows that wait then. */
  merge(changes: readonly RowChange[], at: PositionToken): number {
    const into = this.#waiting;
    if (!into) return 0;
    const merged = byKey(into.changes);
    for (const change of changes) {
      const text = keyText(change.key);
      merged.delete(text); // reinsert at the end, because positions rise
      // A consumer need not receive the deletion of a row that it has not received.
      if (change.operation === 'UPSERT' || !into.reset || !this.#query.snapshot) merged.set(text, change);
    }
    into.changes = merged;
    into.at = laterToken(into.at, at);
    return merged.size;
  }

  /** Returns what waits, and regards it as received. */
  take(): WaitingUpdate | undefined {
    const update = this.#waiting;
    if (!update) return undefined;
    this.#waiting = undefined;
    if (update.reset) this.#held = this.#query.where && this.#query.snapshot ? new Set() : undefined;
    this.#hold(update.changes);
    return update;
  }

  #concerns({ operation, key }: RowChange): boolean {
    if (operation === 'UPSERT' || !this.#held || this.#waiting?.reset) return true;
    const text = keyText(key);
    if (this.#held.has(text)) return true;
    if (!this.#waiting) return false;
    const waiting = byKey(this.#waiting.changes);
    this.#waiting.changes = waiting;
    return waiting.has(text);
  }

  #hold(changes: FeedChanges): void {
    const held = this.#held;
    if (!held) return;
    for (const { operation, key } of changes.values()) {
      if (operation === 'UPSERT') held.add(keyText(key));
      else held.delete(keyText(key));
    }
    if (held.size > maxHeld) this.#held = undefined;
  }
}

function byKey(changes: FeedChanges): Map<string, RowChange> {
  return changes instanceof Map ? changes : new Map(changes.map((change) => [keyText(change.key), change]));
}

const parts = new WeakMap<readonly RowChange[], Map<string, readonly RowChange[]>>();

/** Selects some of the changes. Equal selections return the same object. */
function those(changes: readonly RowChange[], wanted: readonly boolean[]): readonly RowChange[] {
  if (!wanted.includes(false)) return changes;
  const known = parts.get(changes) ?? new Map<string, readonly RowChange[]>();
  parts.set(changes, known);
  const id = wanted.map(Number).join('');
  const part = known.get(id) ?? changes.filter((_, index) => wanted[index]);
  known.set(id, part);
  return part;
}
