import { beginning, type GlobalPosition } from '../events/global-position.ts';
import type { Projection, RowKey } from '../projections/projection.ts';
import type { LiveRow } from '../schema/operation-context.ts';
import { canonicalKey, columnOf } from '../store/row-values.ts';
import { columnsLost } from './live-compatibility.ts';
import type { RowWatcher } from './live-rows.ts';
import { projectionSwitched, type Subscription } from './live-subscription.ts';

export interface RowSubscriptionOptions {
  readonly projection: Projection;
  readonly key: RowKey;
  readonly columns: readonly string[];
  readonly after: GlobalPosition | null;
  wake(): void;
}

interface ReadState extends LiveRow {
  readonly from: Projection;
}

/** Gives the newest state of one row: a consumer that is slower than the changes gets fewer of them. */
export function createRowSubscription(options: RowSubscriptionOptions): Subscription<LiveRow> {
  const { projection, columns, wake } = options;
  let floor = options.after ?? beginning;
  let given: ReadState | undefined;
  let waiting: ReadState | undefined;
  let leave = () => {};

  return {
    attach(follower) {
      for (const name of columns) columnOf(projection, name);
      const key = canonicalKey(projection, options.key);
      const lost = columnsLost(projection, follower.projection, columns);
      if (lost.length > 0) throw projectionSwitched(projection, follower.projection, lost);
      const watcher: RowWatcher = {
        key,
        columns,
        get floor() {
          return floor;
        },
        receive(row, position, changed) {
          const next = { row, position, from: follower.projection };
          const known = waiting ?? given;
          if (!changed && known && sameValues(known, next, columns)) return;
          waiting = next;
          wake();
        },
      };
      follower.rows.add(watcher);
      leave = () => follower.rows.remove(watcher);
    },
    detach() {
      leave();
      // What the consumer has not pulled is for the next version to tell.
      waiting = undefined;
    },
    take() {
      if (!waiting) return undefined;
      const { row, position } = waiting;
      given = waiting;
      waiting = undefined;
      floor = position;
      return { row, position };
    },
  };
}

/** Whether the columns have the same values, read from whichever versions. */
function sameValues(a: ReadState, b: ReadState, columns: readonly string[]): boolean {
  return valuesText(a, columns) === valuesText(b, columns);
}

function valuesText({ row, from }: ReadState, columns: readonly string[]): string {
  return row === null ? '' : JSON.stringify(columns.map((name) => from.codec.encodeValue(name, row[name])));
}
