import { setTimeout as pause } from 'node:timers/promises';
import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { readInlineHolders } from '../../store/inline/inline-locks.ts';
import type { Database } from '../../store/postgres/database.ts';
import { sqlStateOf } from '../../store/postgres/database-errors.ts';
import type { Transaction } from '../../store/postgres/transaction.ts';
import { announceLeave, keepFromLive, readInlineVersions, settleLeave } from '../../store/registry/inline-versions.ts';

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
  if (!(await isInline(db, { name, version }))) return;
  await announceLeave(db, name, version);
  await untilOver(db, { name, version }, () => settleLeave(db, name, version));
}

/**
 * Like {@link leaveInline}, but announces nothing until the transactions that fold into the version now have ended.
 *
 * @throws RefoldError like `leaveInline`; then the version stays live
 */
export async function leaveInlineAtRest(db: Database, of: Version): Promise<void> {
  if (!(await isInline(db, of))) return;
  const before = await readInlineHolders(db, idOf(of));
  await untilOver(db, of, async () => {
    const now = await readInlineHolders(db, idOf(of));
    return !now.some(({ transaction }) => before.some((one) => one.transaction === transaction));
  });
  await leaveInline(db, of);
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

async function isInline(db: Database, { name, version }: Version): Promise<boolean> {
  const known = (await readInlineVersions(db)).find((one) => one.name === name && one.version === version);
  return known !== undefined && known.status !== 'building';
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
