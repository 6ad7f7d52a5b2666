import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { isLeaveUndecided, readInlineHolders } from '../../store/inline/inline-locks.ts';
import type { Database } from '../../store/postgres/database.ts';
import { sqlStateOf } from '../../store/postgres/database-errors.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import {
  announceLeave,
  type InlineStatus,
  keepFromLive,
  readInlineVersions,
  settleLeave,
} from '../../store/registry/inline-versions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { isGateFree } from './closed-gate.ts';

type Version = Pick<Projection, 'name' | 'version'>;

// Appends end within milliseconds, except one in a user's own transaction, which may stay open for long.
const waitMilliseconds = 5_000;
const lookMilliseconds = 10;

/**
 * Makes appends leave an inline version, and waits until no append folds into it. Appends do not wait: after the announcement they ignore the
 * version. If appends do not fold into it, nothing happens. It joins the appends again after a second at the earliest.
 *
 * @throws RefoldError `DATABASE_ERROR` with `sqlState` 55P03 if a transaction that has folded into the version stays open for more than
 *   five seconds. The version still leaves when that transaction ends.
 */
export async function leaveInline(db: Database, { name, version }: Version): Promise<void> {
  if (((await statusOf(db, { name, version })) ?? 'building') === 'building') return;
  await announceLeave(db, name, version);
  await untilOver(db, { name, version }, () => settleLeave(db, name, version));
}

/**
 * Runs work that closes the gate for a moment, and repeats it while running appends keep it open. The version stays live. If it is leaving the
 * appends, that ends first: appends may already have left it out.
 *
 * @param work returns undefined if the version is leaving by now ({@link isLeaving} after it has closed the gate), and does nothing before
 * @throws RefoldError like {@link leaveInline}
 */
export async function betweenAppends<T>(
  db: Database,
  of: Version,
  work: (isLive: boolean) => Promise<T | undefined>,
): Promise<T> {
  let done: { readonly result: T } | undefined;
  await untilOver(db, of, async () => {
    const status = await statusOf(db, of);
    if (status === 'leaving') await leaveInline(db, of);
    if (status === 'live' && (!(await isGateFree(db)) || (await isLeaveUndecided(db, idOf(of))))) return false;
    const result = await work(status === 'live').catch((error: unknown) => {
      if (status === 'live' && isHeld(error)) return undefined;
      throw error;
    });
    if (result !== undefined) done = { result };
    return done !== undefined;
  });
  return (done as unknown as { readonly result: T }).result; // it ends when there is one
}

/**
 * Runs work on a version's rows in a transaction during which no append folds into it.
 *
 * @throws RefoldError like {@link leaveInline}
 */
export async function withoutAppends<T>(
  db: Database,
  { name, version }: Version,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (;;) {
    await leaveInline(db, { name, version });
    const outcome = await db.transaction(async (tx) => {
      // The version may have joined the appends again in between.
      if (!(await keepFromLive(tx, name, version))) return null;
      return { result: await work(tx) };
    });
    if (outcome) return outcome.result;
  }
}

/**
 * Whether the version is leaving the appends, or may be. If not, and the gate is closed, its table has every event, and a later
 * announcement has a later position. The locks come first: an announcement that has ended between the two statements is seen by the second.
 */
export async function isLeaving(tx: Queryable, version: Version): Promise<boolean> {
  return (await isLeaveUndecided(tx, idOf(version))) || (await statusOf(tx, version)) === 'leaving';
}

async function statusOf(db: Queryable, { name, version }: Version): Promise<InlineStatus | undefined> {
  return (await readInlineVersions(db)).find((one) => one.name === name && one.version === version)?.status;
}

async function untilOver(db: Database, of: Version, look: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + waitMilliseconds;
  while (!(await look())) {
    if (performance.now() > end) throw await stillAppending(db, of);
    await pause(lookMilliseconds);
  }
}

async function stillAppending(db: Database, of: Version): Promise<RefoldError> {
  const [oldest] = await readInlineHolders(db, idOf(of));
  const who = oldest
    ? `session ${oldest.pid ?? '(a prepared transaction)'} of '${oldest.applicationName ?? 'unknown'}' has appended to it in a transaction that is open ${oldest.seconds === null ? '' : `for ${Math.round(oldest.seconds)} s `}(${oldest.state ?? 'prepared'})`
    : 'transactions that append to it stayed open too long';
  return new RefoldError(
    'DATABASE_ERROR',
    `${idOf(of)} is inline, and ${who}. Its rows are complete only when that ends. End the transaction, or try again later.`,
    { sqlState: lockNotAvailable, ...of, ...(oldest?.pid ? { pid: oldest.pid } : {}) },
  );
}

/** Whether an operation failed because other sessions hold the locks that it needs. */
export function isHeld(error: unknown): boolean {
  return sqlStateOf(error) === lockNotAvailable;
}

const lockNotAvailable = '55P03';
const idOf = ({ name, version }: Version) => `${name}@${version}`;
