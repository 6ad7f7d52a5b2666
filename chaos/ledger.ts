/** What is known of one append: the callers' own account of it, kept apart from the database. */
export interface LedgerEntry {
  readonly append: number;
  readonly writer: number;
  /** What was asked for: a part for each stream, in order. */
  readonly parts: readonly { readonly family: string; readonly streamId: string; readonly types: readonly string[] }[];
  /**
   * `acknowledged`: it must be there, once. `refused`: nothing of it may be there. `unknown`: the connection was lost meanwhile, so it is there
   * whole, or not at all.
   */
  outcome: 'under way' | 'acknowledged' | 'refused' | 'unknown';
  /** Where the log says it is, once it has been acknowledged: of all its events, or of the last. */
  positions: readonly bigint[];
  /** When the request was sent that was acknowledged, and when that was heard, in milliseconds since 1970. */
  sentAt: number;
  acknowledgedAt: number;
}

/** The time in which what was acknowledged may have been lost: a standby without the tail took over. In milliseconds since 1970. */
export interface Cut {
  readonly from: number;
  readonly to: number;
  /** The last position that was left. */
  readonly head: bigint;
}

export interface Ledger {
  /** All appends, by number. */
  readonly entries: readonly LedgerEntry[];
  readonly cuts: readonly Cut[];
  begin(writer: number, parts: LedgerEntry['parts']): LedgerEntry;
  cut(cut: Cut): void;
  count(outcome: LedgerEntry['outcome']): number;
}

export function createLedger(): Ledger {
  const entries: LedgerEntry[] = [];
  const cuts: Cut[] = [];
  return {
    entries,
    cuts,
    begin(writer, parts) {
      const append = entries.length;
      const entry: LedgerEntry = {
        append,
        writer,
        parts,
        outcome: 'under way',
        positions: [],
        sentAt: 0,
        acknowledgedAt: 0,
      };
      entries.push(entry);
      return entry;
    },
    cut: (cut) => void cuts.push(cut),
    count: (outcome) => entries.reduce((sum, entry) => sum + (entry.outcome === outcome ? 1 : 0), 0),
  };
}

export function acknowledge(entry: LedgerEntry, positions: readonly bigint[], sentAt: number): void {
  entry.outcome = 'acknowledged';
  entry.positions = positions;
  entry.sentAt = sentAt;
  entry.acknowledgedAt = Date.now();
}

/** Whether the server that acknowledged it may be one whose tail is lost: a gateway may have told so much later. */
export function mayBeCut(cuts: readonly Cut[], { sentAt, acknowledgedAt }: LedgerEntry): boolean {
  return cuts.some(({ from, to }) => acknowledgedAt >= from && sentAt <= to);
}
