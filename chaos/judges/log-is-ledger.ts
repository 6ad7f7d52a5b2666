import type { RecordedEvent } from '../../src/index.ts';
import { parcel } from '../domain.ts';
import { type Cut, type LedgerEntry, mayBeCut } from '../ledger.ts';
import type { Judge } from './judge.ts';

/** Compares the log with the traffic's own record of acknowledgements. */
export const logIsLedger: Judge = {
  name: 'log-is-ledger',
  promise:
    'every acknowledged append is in the log once and whole unless a fail-over lost it, and the log holds nothing else',
  async differences({ ledger, events }) {
    const ofTraffic = events.filter(({ family }) => family !== parcel.name);
    const byAppend = Map.groupBy(ofTraffic, ({ payload }) => (payload as { readonly append: number }).append); // each has its mark
    const strangers = [...byAppend.keys()]
      .filter((append) => ledger.entries[append] === undefined)
      .map((append) => `append ${append} is in the log, but no writer sent it`);
    return [
      ...strangers,
      ...ledger.entries.flatMap((entry) => differencesOf(entry, byAppend.get(entry.append) ?? [], ledger.cuts)),
      ...orderDifferences(ledger.entries.filter(({ append }) => byAppend.has(append))),
    ];
  },
};

function differencesOf(entry: LedgerEntry, found: readonly RecordedEvent[], cuts: readonly Cut[]): readonly string[] {
  const { append, outcome, positions } = entry;
  if (found.length === 0 && outcome === 'acknowledged' && mayBeCut(cuts, entry)) return [];
  const wanted = entry.parts.flatMap(({ family, streamId, types }) =>
    types.map((type, part) => `${family} ${streamId} ${type} ${part}`),
  );
  const there = found.map(
    ({ family, streamId, type, payload }) =>
      `${family} ${streamId} ${type} ${(payload as { readonly part: number }).part}`, // each has its mark
  );
  const whole = wanted.join() === there.join();
  const expected = `expected [${wanted.join(', ')}], found [${there.join(', ')}]`;
  switch (outcome) {
    case 'acknowledged':
      if (!whole) return [`append ${append} was acknowledged: ${expected}`];
      return positionDifferences(append, positions, found);
    case 'unknown':
      return whole || there.length === 0
        ? []
        : [`append ${append}, of unknown outcome, is in the log in part: ${expected}`];
    case 'refused':
    case 'under way':
      return there.length === 0 ? [] : [`append ${append} was ${outcome}, but is in the log: [${there.join(', ')}]`];
  }
}

/** Callers get the positions of all events, or of the last. */
function positionDifferences(
  append: number,
  told: readonly bigint[],
  found: readonly RecordedEvent[],
): readonly string[] {
  const there = found.map(({ position }) => position);
  if (told.join() === there.slice(-told.length).join()) return [];
  return [`append ${append} got the positions ${told.join()}, but is at ${there.join()}`];
}

/** An append that one caller sends after another append was acknowledged comes after it. */
function orderDifferences(entries: readonly LedgerEntry[]): readonly string[] {
  const acknowledged = entries.filter(({ outcome, writer }) => outcome === 'acknowledged' && writer >= 0);
  return [...Map.groupBy(acknowledged, ({ writer }) => writer).values()].flatMap((ofWriter) =>
    ofWriter.flatMap(({ append, positions }, index) => {
      const before = ofWriter[index - 1]?.positions.at(-1) ?? -1n;
      const first = positions[0] ?? -1n;
      return first > before
        ? []
        : [`append ${append} is at ${first}, before the previous append of its writer (${before})`];
    }),
  );
}
