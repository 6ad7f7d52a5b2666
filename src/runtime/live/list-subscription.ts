import { RefoldError } from '../../errors.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { filterColumns } from '../../projections/queries/filter-columns.ts';
import type { LiveListQuery, LiveListUpdate } from '../../schema/contract/operation-context.ts';
import { pageQuery } from '../../store/queries/row-queries.ts';
import { columnsLost } from './compatibility.ts';
import type { Follower } from './follower.ts';
import {
  type ListWatcher,
  type ListWindow,
  type WindowChange,
  windowDifference,
  windowQuery,
  withPlaces,
} from './lists.ts';
import { type LiveSubscription, projectionSwitched } from './live-subscription.ts';

export interface ListSubscriptionOptions {
  readonly projection: Projection;
  readonly query: LiveListQuery;
  readonly readSchema: string;
  readonly after: GlobalPosition | null;
  wake(): void;
  /** Ends the subscription. */
  fail(error: unknown): void;
}

/**
 * An update that the consumer has not taken yet. It is immutable and shared by all subscribers with the same earlier state, and so are the
 * update created from it and the response created from that.
 */
type Waiting =
  | { readonly kind: 'window'; readonly window: ListWindow; readonly position: GlobalPosition }
  | { readonly kind: 'change'; readonly change: WindowChange }
  /** Several changes. `written` holds the keys of rows of which the consumer may have an older state. */
  | {
      readonly kind: 'changes';
      readonly to: ListWindow;
      readonly position: GlobalPosition;
      readonly written: ReadonlySet<string>;
    };

// Each subscriber's window stays in memory and is read again on every change, so its size is limited.
const longestList = 1000;
const noWindow: ListWindow = new Map();

/** Delivers a list and its changes. A consumer that is slower than the changes receives them merged. */
export function createListSubscription(options: ListSubscriptionOptions): LiveSubscription<LiveListUpdate> {
  return new ListSubscription(options);
}

/** A class that is also the watcher, to save memory: there is one for each of many thousand subscribers. */
class ListSubscription implements LiveSubscription<LiveListUpdate>, ListWatcher {
  readonly query: LiveListQuery;
  floor: GlobalPosition;
  readonly #options: ListSubscriptionOptions;
  #given = noWindow;
  #waiting: Waiting | undefined;
  #follower: Follower | undefined;

  constructor(options: ListSubscriptionOptions) {
    this.#options = options;
    this.query = options.query;
    this.floor = options.after ?? beginning;
  }

  attach(follower: Follower): void {
    checkQuery(this.#options, follower.projection);
    follower.lists.add(this);
    this.#follower = follower;
  }

  detach(): void {
    this.#follower?.lists.remove(this);
    // The next version's window includes what the consumer has not taken.
    this.#waiting = undefined;
  }

  receiveWindow(window: ListWindow, position: GlobalPosition): void {
    this.#waiting = windowAt(window, position);
    this.#options.wake();
  }

  receiveChange(change: WindowChange): void {
    this.#waiting = merged(this.#waiting, change, this.query.first);
    this.#options.wake();
  }

  fail(error: unknown): void {
    this.#options.fail(error);
  }

  historyChanged(): void {
    this.floor = beginning;
    this.#waiting = undefined;
  }

  take(): LiveListUpdate | undefined {
    const waiting = this.#waiting;
    if (!waiting) return undefined;
    this.#waiting = undefined;
    const from = this.#given;
    this.#given =
      waiting.kind === 'change' ? waiting.change.to : waiting.kind === 'window' ? waiting.window : waiting.to;
    const update = updateOf(this.#options.projection, waiting, from);
    if (update) this.floor = update.position;
    return update;
  }
}

function checkQuery({ projection: from, query, readSchema }: ListSubscriptionOptions, to: Projection): void {
  if (!Number.isInteger(query.first) || query.first < 1 || query.first > longestList) {
    throw new RefoldError('BAD_USER_INPUT', `A live list has 1 to ${longestList} rows, found ${query.first}.`);
  }
  pageQuery(readSchema, from, windowQuery(query));
  const looked = [...filterColumns(query.where), ...query.orderBy.map(({ column }) => column)];
  const lost = columnsLost(from, to, [...query.columns, ...looked]);
  if (lost.length > 0) throw projectionSwitched(from, to, lost);
  try {
    pageQuery(readSchema, to, windowQuery(query));
  } catch {
    throw projectionSwitched(from, to, looked); // for example a filter by a value that the enum no longer has
  }
}

const windows = new WeakMap<ListWindow, Waiting>();

/** Returns the same object for all that receive a window at once. */
function windowAt(window: ListWindow, position: GlobalPosition): Waiting {
  const known = windows.get(window);
  if (known?.kind === 'window' && known.position === position) return known;
  const waiting: Waiting = { kind: 'window', window, position };
  windows.set(window, waiting);
  return waiting;
}

// Only for the change being delivered: all watchers receive it in one turn. A longer-lived cache would keep every earlier update alive.
const merges = new Map<Waiting | undefined, Waiting>();
let mergedChange: WindowChange | undefined;

/** Merges a change into what waits. Computed once for all subscribers with the same waiting update. */
function merged(waiting: Waiting | undefined, change: WindowChange, first: number): Waiting {
  if (mergedChange !== change) merges.clear();
  mergedChange = change;
  const result = merges.get(waiting) ?? merge(waiting, change, first);
  merges.set(waiting, result);
  return result;
}

function merge(waiting: Waiting | undefined, change: WindowChange, first: number): Waiting {
  const { to } = change;
  const { position } = change.update;
  if (!waiting) return { kind: 'change', change };
  if (waiting.kind === 'window') return windowAt(to, position);
  const written = new Set(waiting.kind === 'changes' ? waiting.written : writtenIn(waiting.change));
  for (const text of writtenIn(change)) written.add(text);
  // With that many changes, the whole list is no longer than the changes.
  if (written.size > 2 * first) return windowAt(to, position);
  return { kind: 'changes', to, position, written };
}

/** The keys of rows that changed, and of rows that left, which may come back changed. */
function writtenIn({ from, to, written }: WindowChange): string[] {
  return [...written, ...[...from.keys()].filter((text) => !to.has(text))];
}

interface Made {
  readonly from: ListWindow;
  readonly update: LiveListUpdate | undefined;
}

const updates = new WeakMap<Waiting, Made>();

/** Returns the update from a window to what waits; undefined if the changes cancel out. Computed once for all subscribers with the same state. */
function updateOf(projection: Projection, waiting: Waiting, from: ListWindow): LiveListUpdate | undefined {
  if (waiting.kind === 'change') return waiting.change.update;
  const known = updates.get(waiting);
  if (known && (known.from === from || waiting.kind === 'window')) return known.update;
  const update = makeUpdate(projection, waiting, from);
  updates.set(waiting, { from, update });
  return update;
}

function makeUpdate(
  projection: Projection,
  waiting: Exclude<Waiting, { readonly kind: 'change' }>,
  from: ListWindow,
): LiveListUpdate | undefined {
  const { position } = waiting;
  if (waiting.kind === 'window') {
    return { position, snapshot: [...waiting.window.values()], entered: [], changed: [], left: [] };
  }
  const difference = windowDifference(projection, from, waiting.to, waiting.written);
  return difference && withPlaces({ position, ...difference }, projection, from, waiting.to);
}
