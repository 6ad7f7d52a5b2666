import type { GlobalPosition } from '../../events/global-position.ts';
import { readAppending } from '../../store/inline/inline-locks.ts';
import type { Database } from '../../store/postgres/database.ts';
import { closeGate, limitLockWaits, readLast } from '../../store/registry/inline-versions.ts';
import type { Queryable } from '../../store/statements/statement.ts';

// While the gate waits for running appends, appends of all families wait too. Most appends end within milliseconds.
export const gateTimeout = '100ms';
// They also wait while this process is frozen or unreachable, so the server ends its transaction after this time. Together: 250 ms.
export const maxIdleMs = 150;
// An append that has been open for longer will probably outlast the lock timeout, so the gate is not tried.
const maxSeconds = 0.1;
/** Appends wait while the remaining events are folded. A processor that is further behind must catch up first. */
export const maxLeft = 200n;

/** Whether the gate can probably be closed soon. */
export async function isGateFree(db: Database): Promise<boolean> {
  return !(await readAppending(db)).some(({ seconds }) => (seconds ?? 0) > maxSeconds);
}

/**
 * Keeps all appends waiting until the transaction ends. Everything else that may wait comes before it.
 *
 * @returns the end of the log: everything up to there is committed or rolled back
 * @throws RefoldError `DATABASE_ERROR` with `sqlState` 55P03 if a running append takes too long
 */
export async function closeGateBriefly(tx: Queryable): Promise<GlobalPosition> {
  await limitLockWaits(tx, gateTimeout);
  await closeGate(tx);
  return readLast(tx);
}
