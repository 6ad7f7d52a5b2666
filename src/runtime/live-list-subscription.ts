import { RefoldError } from '../errors.ts';
import { beginning, type GlobalPosition } from '../events/global-position.ts';
import type { Projection } from '../projections/projection.ts';
import type { LiveListQuery, LiveListUpdate } from '../schema/operation-context.ts';
import { pageQuery } from '../store/row-queries.ts';
import { columnsLost, filterColumns } from './live-compatibility.ts';
import { type ListWatcher, type ListWindow, type WindowChange, windowDifference, windowQuery } from './live-lists.ts';
import { projectionSwitched, type Subscription } from './live-subscription.ts';

export interface ListSubscriptionOptions {
  readonly projection: Projection;
  readonly query: LiveListQuery;
  readonly readSchema: string;
  readonly after: GlobalPosition | null;
  wake(): void;
}

/** What the consumer has not pulled yet. */
type Waiting =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'window'; readonly window: ListWindow; readonly position: GlobalPosition }
  | { readonly kind: 'change'; readonly change: WindowChange }
  /** Several changes: `written` holds the keys whose rows the consumer may know in an old state. */
  | {
      readonly kind: 'changes';
      readonly to: ListWindow;
      readonly position: GlobalPosition;
      readonly written: Set<string>;
    };

// A subscriber's window is kept in memory and read again whenever it changes.
const longestList = 1000;
const nothing: Waiting = { kind: 'nothing' };

/** Gives a list and what becomes of it: a consumer that is slower than the changes gets them merged. */
export function createListSubscription(options: ListSubscriptionOptions): Subscription<LiveListUpdate> {
  const { projection, query, readSchema, after, wake } = options;
  let floor = after ?? beginning;
  let given: ListWindow = new Map();
  let waiting: Waiting = nothing;
  let leave = () => {};

  const watcher: ListWatcher = {
    query,
    get floor() {
      return floor;
    },
    receiveWindow(window, position) {
      waiting = { kind: 'window', window, position };
      wake();
    },
    receiveChange(change) {
      waiting = merged(waiting, change, query.first);
      wake();
    },
  };

  function hand(to: ListWindow, update: LiveListUpdate): LiveListUpdate {
    waiting = nothing;
    given = to;
    floor = update.position;
    return update;
  }

  return {
    attach(follower) {
      checkQuery(projection, follower.projection);
      follower.lists.add(watcher);
      leave = () => follower.lists.remove(watcher);
    },
    detach() {
      leave();
      // What the consumer has not pulled is for the next version's window to tell.
      waiting = nothing;
    },
    take() {
      switch (waiting.kind) {
        case 'nothing':
          return undefined;
        case 'window': {
          const { window, position } = waiting;
          return hand(window, { position, snapshot: [...window.values()], entered: [], changed: [], left: [] });
        }
        case 'change':
          return hand(waiting.change.to, waiting.change.update);
        case 'changes': {
          const { to, position, written } = waiting;
          const difference = windowDifference(projection, given, to, written);
          if (difference) return hand(to, { position, ...difference });
          waiting = nothing; // all that changed was undone
          given = to;
          return undefined;
        }
      }
    },
  };

  function checkQuery(from: Projection, to: Projection): void {
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
      throw projectionSwitched(from, to, looked); // such as a filter by a value that an enum has no more
    }
  }
}

function merged(waiting: Waiting, change: WindowChange, first: number): Waiting {
  const { to } = change;
  const { position } = change.update;
  if (waiting.kind === 'nothing') return { kind: 'change', change };
  if (waiting.kind === 'window') return { kind: 'window', window: to, position };
  const written = waiting.kind === 'changes' ? waiting.written : writtenIn(waiting.change, new Set());
  writtenIn(change, written);
  // The whole list says as much as that many changes.
  if (written.size > 2 * first) return { kind: 'window', window: to, position };
  return { kind: 'changes', to, position, written };
}

/** Adds the keys of rows that changed, and of those that left: they may come back changed. */
function writtenIn({ from, to, written }: WindowChange, all: Set<string>): Set<string> {
  for (const text of written) all.add(text);
  for (const text of from.keys()) if (!to.has(text)) all.add(text);
  return all;
}
