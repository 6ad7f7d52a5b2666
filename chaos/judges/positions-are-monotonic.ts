import { type Answer, positionOf } from '../clients/told.ts';
import type { Cut, LedgerEntry } from '../ledger.ts';
import type { Judge } from './judge.ts';

/** Monotonic reads: a client demands the last position that it got, and never gets an older state. */
export const positionsAreMonotonic: Judge = {
  name: 'positions-are-monotonic',
  promise: 'no client gets an older position than it demands, and a lost position never counts as reached',
  async differences({ answers, ledger, events }) {
    const inLog = new Set(events.map(({ payload }) => (payload as { readonly append: number }).append)); // each has its mark
    const lost = ledger.entries.filter(({ outcome, append }) => outcome === 'acknowledged' && !inLog.has(append));
    return answers.flatMap((answer) => {
      const { client, demanded, response, asked } = answer;
      if (!demanded || asked.kind === 'written row' || response.codes.length > 0) return [];
      const where = `${client} demanded ${demanded.text}`;
      if (response.position !== undefined && positionOf(response.position) < positionOf(demanded.text))
        return [`${where}, but the response is as of ${response.position}`];
      const cut = ledger.cuts.find(({ from, to }) => demanded.toldAt >= from && demanded.toldAt <= to);
      const covered = cut && answer.askedAt > cut.to && lost.find((entry) => isBefore(entry, answer, cut));
      if (covered)
        return [
          `${where}, which includes append ${covered.append} (${covered.positions.join()}), and got a response, although the append was lost`,
        ];
      return [];
    });
  },
};

/** Whether the cut removed an append that the demanded position includes: the position is beyond the remaining log, so its anchor is gone. */
function isBefore({ positions, acknowledgedAt }: LedgerEntry, { demanded }: Answer, { from, head }: Cut): boolean {
  const last = positions.at(-1) ?? 0n;
  return (
    demanded !== undefined &&
    acknowledgedAt >= from &&
    acknowledgedAt <= demanded.toldAt &&
    last > head &&
    last <= positionOf(demanded.text)
  );
}
