/**
 * Between the append and the commit, the transaction holds streams, rows and the horizon. If the process freezes or disappears there, the server
 * rolls the append back after so many milliseconds.
 */
export const longestFrozenMs = 5000;

export const beginAppend = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${longestFrozenMs}`;

/** The commit waits for other commits that notify. As at the end of refold.append, their time is not that of a locked row. */
export function commitAppend(lockTimeoutMs: number | undefined): string {
  return lockTimeoutMs === undefined ? 'commit' : 'set local lock_timeout = 5000; commit';
}
