import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { LiveRow } from '../../schema/contract/operation-context.ts';
import { canonicalKey, columnOf } from '../../store/tables/row-values.ts';
import { columnsLost } from './compatibility.ts';
import type { Follower } from './follower.ts';
import { type LiveSubscription, projectionSwitched } from './live-subscription.ts';
import type { RowWatcher } from './rows.ts';

export interface RowSubscriptionOptions {
  readonly projection: Projection;
  readonly key: RowKey;
  readonly columns: readonly string[];
  readonly after: GlobalPosition | null;
  wake(): void;
  /** Ends the subscription. */
  fail(error: unknown): void;
}

/** Delivers the newest state of one row. A consumer that is slower than the changes skips intermediate states. */
export function createRowSubscription(options: RowSubscriptionOptions): LiveSubscription<LiveRow> {
  return new RowSubscription(options);
}

/** A class that is also the watcher, to save memory: there is one for each of many thousand subscribers. */
class RowSubscription implements LiveSubscription<LiveRow>, RowWatcher {
  readonly columns: readonly string[];
  key: RowKey;
  floor: GlobalPosition;
  readonly #options: RowSubscriptionOptions;
  #given: LiveRow | undefined;
  #givenFrom: Projection | undefined;
  #waiting: LiveRow | undefined;
  #follower: Follower | undefined;

  constructor(options: RowSubscriptionOptions) {
    this.#options = options;
    this.columns = options.columns;
    this.key = options.key;
    this.floor = options.after ?? beginning;
  }

  attach(follower: Follower): void {
    const { projection, key } = this.#options;
    for (const name of this.columns) columnOf(projection, name);
    this.key = canonicalKey(projection, key);
    const lost = columnsLost(projection, follower.projection, this.columns);
    if (lost.length > 0) throw projectionSwitched(projection, follower.projection, lost);
    follower.rows.add(this);
    this.#follower = follower;
  }

  detach(): void {
    this.#follower?.rows.remove(this);
    // The next version delivers what the consumer has not taken.
    this.#waiting = undefined;
  }

  receive(state: LiveRow, changed: boolean): void {
    const from = this.#follower?.projection;
    const [known, knownFrom] = this.#waiting ? [this.#waiting, from] : [this.#given, this.#givenFrom];
    if (!changed && known && knownFrom && from) {
      if (valuesText(known, knownFrom, this.columns) === valuesText(state, from, this.columns)) return;
    }
    this.#waiting = state;
    this.#options.wake();
  }

  /** The next state counts as a change even if the row is the same, because its position differs. */
  fail(error: unknown): void {
    this.#options.fail(error);
  }

  historyChanged(): void {
    this.floor = beginning;
    this.#given = undefined;
    this.#waiting = undefined;
  }

  take(): LiveRow | undefined {
    const state = this.#waiting;
    if (!state) return undefined;
    this.#given = state;
    this.#givenFrom = this.#follower?.projection;
    this.#waiting = undefined;
    this.floor = state.position;
    return state;
  }
}

/** Returns equal texts for equal values, whichever versions they were read from. */
function valuesText({ row }: LiveRow, from: Projection, columns: readonly string[]): string {
  return row === null ? '' : JSON.stringify(columns.map((name) => from.codec.encodeValue(name, row[name])));
}
