import type { Row } from '../../../src/projections/columns/row-codec.ts';
import { keyText, type Projection } from '../../../src/projections/projection/projection.ts';
import type { ListPlace, LiveListUpdate, LiveRow } from '../../../src/schema/contract/operation-context.ts';

/** The state of a client that applies every message. It records messages that no client should receive. */
export interface Replica<State> {
  readonly state: State;
  readonly messages: number;
  readonly problems: string[];
  /** Resolves when the subscription has ended. */
  readonly ended: Promise<void>;
}

/** Pulls at its own speed: it waits for `pause` after each message. */
export function replicateRow(
  messages: AsyncIterable<LiveRow>,
  pause: () => Promise<void>,
): Replica<Row | null | undefined> {
  const replica = {
    state: undefined as Row | null | undefined,
    messages: 0,
    problems: [] as string[],
    ended: Promise.resolve(),
  };
  const check = positionChecker(replica.problems);
  replica.ended = follow(messages, pause, ({ row, position }) => {
    check(position);
    replica.messages++;
    replica.state = row;
  });
  return replica;
}

export function replicateList(
  projection: Projection,
  messages: AsyncIterable<LiveListUpdate>,
  pause: () => Promise<void>,
): Replica<ReadonlyMap<string, Row> | undefined> {
  const replica = {
    state: undefined as Map<string, Row> | undefined,
    messages: 0,
    problems: [] as string[],
    ended: Promise.resolve(),
  };
  const check = positionChecker(replica.problems);
  const textOf = (row: Row) => keyText(projection.keyColumns.map((name) => row[name]));
  replica.ended = follow(messages, pause, ({ position, snapshot, entered, changed, left, places = [] }) => {
    check(position);
    replica.messages++;
    const rows = snapshot ? new Map(snapshot.map((row) => [textOf(row), row])) : replica.state;
    if (!rows) {
      replica.problems.push('the first message is no snapshot');
      return;
    }
    if (!snapshot && entered.length + changed.length + left.length === 0)
      replica.problems.push('a message says nothing');
    for (const key of left)
      if (!rows.delete(keyText(key))) replica.problems.push(`${keyText(key)} left, but was not there`);
    for (const row of entered) {
      if (rows.has(textOf(row))) replica.problems.push(`${textOf(row)} entered twice`);
      rows.set(textOf(row), row);
    }
    for (const row of changed) {
      if (!rows.has(textOf(row))) replica.problems.push(`${textOf(row)} changed, but was not there`);
      rows.set(textOf(row), row);
    }
    replica.state = placed(rows, places);
    if (replica.state.size !== rows.size) replica.problems.push('a row has no place');
  });
  return replica;
}

/** The rows in the order of the list, by their places alone. Those that entered have none yet. */
function placed(rows: ReadonlyMap<string, Row>, places: readonly ListPlace[]): Map<string, Row> {
  const moved = new Set(places.map(({ key }) => keyText(key)));
  const order = [...rows.keys()].filter((text) => !moved.has(text));
  for (const { key, after } of places)
    order.splice(after === null ? 0 : order.indexOf(keyText(after)) + 1, 0, keyText(key));
  return new Map(order.flatMap((text) => (rows.has(text) ? [[text, rows.get(text) as Row]] : [])));
}

async function follow<T>(
  messages: AsyncIterable<T>,
  pause: () => Promise<void>,
  apply: (message: T) => void,
): Promise<void> {
  for await (const message of messages) {
    apply(message);
    await pause();
  }
}

function positionChecker(problems: string[]): (position: bigint) => void {
  let last = -1n;
  return (position) => {
    if (position < last) problems.push(`position ${position} came after ${last}`);
    last = position;
  };
}
