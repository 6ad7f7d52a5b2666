import assert from 'node:assert/strict';
import type { Command } from '../commands/define-command.ts';
import type { RecordedEvent } from '../events/event.ts';
import { unreadable } from '../events/read-payload.ts';
import type { Row } from '../projections/columns/row-codec.ts';
import { fold, foldSteps } from '../projections/fold/fold.ts';
import type { Projection } from '../projections/projection/projection.ts';
import { type Decision, type DecisionOptions, decisionOf } from './decision.ts';
import { expectSame } from './expect-same.ts';
import { createInMemoryLog, type InMemoryAppend } from './in-memory-log.ts';
import { inChanged, surroundings } from './surroundings.ts';

/** The rows that a projection produces from events. Awaiting one of the methods runs it. Each throws an `AssertionError` on a mismatch. */
export interface Projected {
  /** Expects exactly these rows, in any order; decimals and bigints as strings, as clients get them. */
  thenRows(...expected: readonly object[]): Promise<void>;
  /** Returns the rows, ordered by key. */
  rows(): Promise<readonly Row[]>;
  /**
   * Expects the same rows for any batch size, after each row was written and read back, in a replay, when batches are delivered again after a
   * rollback, with a moved clock, in other time zones and in other languages. Rows and events are frozen meanwhile. The runtime relies on
   * these properties. In a worker thread, Node ignores another time zone.
   */
  thenReplayable(): Promise<void>;
}

/**
 * Given events of any streams, checks the rows that a projection produces from them, or what a command decides. Needs no database.
 * `{ type, payload, payloadVersion: 1 }` is an event with a payload in an older shape. What upcasters return is checked against the schema.
 *
 * @example
 * await givenEvents({ family: cart, streamId: 'c1', events: [opened, added] })
 * .projectedBy(cartSummaryV2)
 * .thenRows({ cartId: 'c1', status: 'Opened', totalAmount: '25.00' });
 * await givenEvents({ family: account, streamId: 'a', events: [opened] }, { family: account, streamId: 'b', events: [opened] })
 * .when(transfer, { from: 'a', to: 'b', amount: 5 })
 * .thenStreams([withdrawn], [deposited]);
 */
export function givenEvents(...appends: readonly InMemoryAppend[]) {
  return {
    /** Runs a command on its streams in these events. Each call starts from the same events. */
    when: (command: Command, input: unknown, options: DecisionOptions = {}): Decision =>
      decisionOf(command, input, options, () => appends),
    projectedBy(projection: Projection): Projected {
      const recorded = async () => {
        const log = createInMemoryLog();
        for (const append of appends) await log.append(append);
        return log.events.filter(({ family, type }) =>
          projection.filter.some((entry) => entry.family === family && entry.types.includes(type)),
        );
      };
      const rows = async () =>
        [...foldInBatches(projection, await recorded(), Number.POSITIVE_INFINITY)].map(([, row]) => row);
      return {
        rows: async () => (await rows()).map((row) => projection.codec.forEvolve(row)),
        async thenRows(...expected) {
          const byText = (list: readonly unknown[]) =>
            list
              .map((row) => JSON.parse(JSON.stringify(row)))
              .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
          const found = (await rows()).map((row) => projection.codec.encode(row));
          assert.deepEqual(byText(found), byText(expected.map((row) => inColumnOrder(projection, row))));
        },
        async thenReplayable() {
          const events = await recorded();
          const once = plain(projection, foldInBatches(projection, events, Number.POSITIVE_INFINITY));
          for (const surrounding of surroundings) {
            const elsewhere = inChanged(surrounding, () => foldInBatches(projection, events, Number.POSITIVE_INFINITY));
            const message = `${projection.id} returns other rows ${surrounding.when}. ${surrounding.wayOut}`;
            expectSame(plain(projection, elsewhere), once, message);
          }
          for (const size of [Number.POSITIVE_INFINITY, 1, 2, 3, 7, 50]) {
            const again = plain(projection, foldInBatches(projection, events, size));
            const batches = Number.isFinite(size) ? `in batches of ${size} events` : 'when all is replayed';
            expectSame(again, once, `${projection.id} returns other rows ${batches} than from all events at once.`);
            const undone = plain(projection, foldInBatches(projection, events, size, { deliverTwice: true }));
            expectSame(
              undone,
              once,
              `${projection.id} returns other rows ${batches} if each is delivered again after a crash.`,
            );
          }
        },
      };
    },
  };
}

/** Folds as the runtime does. Between two batches, each row makes the JSON round trip of its stored form. */
function foldInBatches(
  projection: Projection,
  events: readonly RecordedEvent[],
  size: number,
  { deliverTwice = false } = {},
): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (let start = 0; start < events.length; start += size) {
    // Payloads are JSON, so cloning keeps them. An unreadable event has none.
    const batch = events
      .slice(start, start + size)
      .map((event) => (unreadable(event) ? event : structuredClone(event)));
    // What a batch that is rolled back has changed is forgotten.
    if (deliverTwice) foldBatch(projection, batch, rows);
    for (const [text, row] of foldBatch(projection, batch, rows)) {
      if (row) rows.set(text, projection.codec.decode(JSON.parse(JSON.stringify(projection.codec.encode(row)))));
      else rows.delete(text);
    }
  }
  return new Map([...rows].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the rows that a batch changes; null for those that it deletes. */
function foldBatch(
  projection: Projection,
  batch: readonly RecordedEvent[],
  rows: ReadonlyMap<string, Row>,
): Map<string, Row | null> {
  const changed = new Map<string, Row | null>();
  const memory = {
    get: (text: string) => (changed.has(text) ? (changed.get(text) ?? null) : (rows.get(text) ?? null)),
    set: (text: string, _key: unknown, row: Row | null) => void changed.set(text, row),
  };
  fold(projection, foldSteps(projection, batch), memory, { freeze: true });
  return changed;
}

function plain(projection: Projection, rows: ReadonlyMap<string, Row>): unknown[] {
  return [...rows.values()].map((row) => JSON.parse(JSON.stringify(projection.codec.encode(row))));
}

/** Returns the expected row in canonical form: '25' and '25.00' are the same amount. */
function inColumnOrder(projection: Projection, row: object): unknown {
  const given = row as Record<string, unknown>; // any object can be read by column names
  const key = projection.codec.normaliseKey(projection.keyColumns.map((name) => given[name]));
  return projection.codec.encode(projection.codec.normalise(row, key));
}
