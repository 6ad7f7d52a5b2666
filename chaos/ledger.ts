/** What a caller knows of one append: its own record, kept apart from the database. */
export interface LedgerEntry {
  readonly append: number;
  readonly writer: number;
  /** The request: a part for each stream, in order. */
  readonly parts: readonly { readonly family: string; readonly streamId: string; readonly types: readonly string[] }[];
  /**
   * `acknowledged`: it must be in the log once. `refused`: nothing of it may be in the log. `unknown`: the connection was lost meanwhile.
   * It is in the log as a whole, or not at all.
   */
  outcome: 'under way' | 'acknowledged' | 'refused' | 'unknown';
  /** The acknowledged positions: of all its events, or of the last. */
  positions: readonly bigint[];
  /** When the acknowledged request was sent and when its response arrived, in milliseconds since 1970. */
  sentAt: number;
  acknowledgedAt: number;
}

/** A period whose acknowledged appends may be lost, because a standby without the tail took over. In milliseconds since 1970. */
export interface Cut {
  readonly from: number;
  readonly to: number;
  /** The last position of the remaining log. */
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

/** Whether the acknowledging server may be one whose tail is lost. A gateway may have passed on the acknowledgement later. */
export function mayBeCut(
  cuts: readonly Cut[],
  { sentAt, acknowledgedAt }: Pick<LedgerEntry, 'sentAt' | 'acknowledgedAt'>,
): boolean {
  return cuts.some(({ from, to }) => acknowledgedAt >= from && sentAt <= to);
}
