/** What is known of one append: the traffic's own account of it, kept apart from the database. */
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
  /** Where the log says it is, once it has been acknowledged. */
  positions: readonly bigint[];
}

export interface Ledger {
  /** All appends, by number. */
  readonly entries: readonly LedgerEntry[];
  begin(writer: number, parts: LedgerEntry['parts']): LedgerEntry;
  count(outcome: LedgerEntry['outcome']): number;
}

export function createLedger(): Ledger {
  const entries: LedgerEntry[] = [];
  return {
    entries,
    begin(writer, parts) {
      const entry: LedgerEntry = { append: entries.length, writer, parts, outcome: 'under way', positions: [] };
      entries.push(entry);
      return entry;
    },
    count: (outcome) => entries.reduce((sum, entry) => sum + (entry.outcome === outcome ? 1 : 0), 0),
  };
}
