import { type RawBuilder, sql } from 'kysely';
import type { GlobalPosition } from '../../events/global-position.ts';
import { type Queryable, refoldTables, run } from '../statements/statement.ts';

/** Why rows are compared with the log: before a version becomes active, or periodically. */
export type VerificationKind = 'activation' | 'audit';

/** A verification of one version by this process. No other process runs it while the claim is renewed in time. */
export interface VerificationClaim {
  readonly name: string;
  readonly version: number;
  readonly kind: VerificationKind;
  readonly owner: string;
  /** The number of verifications that ended before. */
  readonly round: bigint;
}

// Renewed with every page of the log. If a process crashes, another one takes over after this time.
const busySeconds = 60;

/** Claims a verification. Undefined if it is not due yet, or another process runs it. */
export async function claimVerification(
  db: Queryable,
  wanted: Omit<VerificationClaim, 'round'>,
): Promise<VerificationClaim | undefined> {
  const { name, version, kind, owner } = wanted;
  const claimed = { owner, busy_until: secondsFromNow(busySeconds) };
  const [row] = await run(
    db,
    refoldTables
      .insertInto('refold.verifications')
      .values({ name, version, kind, ...claimed })
      .onConflict((same) =>
        same
          .columns(['name', 'version', 'kind'])
          .doUpdateSet({ owner: sql`excluded.owner`, busy_until: sql`excluded.busy_until` })
          // A new row is due at once: its time is that of this transaction. A Citus cluster allows no functions here.
          .where('refold.verifications.next_at', '<=', sql<string>`excluded.next_at`)
          .where(({ eb, or }) =>
            or([
              eb('refold.verifications.busy_until', 'is', null),
              eb('refold.verifications.busy_until', '<', sql<string>`excluded.next_at`),
            ]),
          ),
      )
      .returning('round'),
  );
  return row && { ...wanted, round: row.round };
}

/** Extends the claim. Returns false if another process has taken over. */
export async function renewVerification(db: Queryable, claim: VerificationClaim): Promise<boolean> {
  const renewed = await run(
    db,
    updateClaimed(claim)
      .set({ busy_until: secondsFromNow(busySeconds) })
      .returning('name'),
  );
  return renewed.length > 0;
}

/** Updates the row of a verification, if the claim is still valid. */
function updateClaimed({ name, version, kind, owner, round }: VerificationClaim) {
  return refoldTables
    .updateTable('refold.verifications')
    .where('name', '=', name)
    .where('version', '=', version)
    .where('kind', '=', kind)
    .where('owner', '=', owner)
    .where('round', '=', round);
}

function secondsFromNow(seconds: number): RawBuilder<string> {
  return sql<string>`now() + make_interval(secs => ${seconds})`;
}

/** The result of a completed verification. */
export interface VerificationResult {
  readonly position: GlobalPosition;
  readonly rowsCompared: number;
  readonly differences: number;
  readonly samples: readonly unknown[];
}

/**
 * Stores the result and schedules the next verification. Returns false if the version's rows have been replaced or another process took
 * over; the result is then ignored.
 */
export async function endVerification(
  db: Queryable,
  claim: VerificationClaim,
  { position, rowsCompared, differences, samples }: VerificationResult,
  nextInSeconds: number,
): Promise<boolean> {
  const found = differences > 0 ? { samples: JSON.stringify(samples), found_at: sql<string>`now()` } : {};
  const ended = await run(
    db,
    updateClaimed(claim)
      .set({
        round: sql`round + 1`,
        owner: null,
        busy_until: null,
        next_at: secondsFromNow(nextInSeconds),
        ended_at: sql`now()`,
        position,
        rows_compared: rowsCompared,
        differences,
        total_rows_compared: sql`total_rows_compared + ${rowsCompared}`,
        total_differences: sql`total_differences + ${differences}`,
        ...found,
      })
      .returning('name'),
  );
  return ended.length > 0;
}

/** Releases an unfinished verification for the next process. */
export async function releaseVerification(db: Queryable, claim: VerificationClaim, nextInSeconds = 0): Promise<void> {
  await run(db, updateClaimed(claim).set({ owner: null, busy_until: null, next_at: secondsFromNow(nextInSeconds) }));
}

/** Call this when the version's rows were replaced: deletes the results for the old rows and cancels a running verification. */
export async function forgetDifferences(db: Queryable, name: string, version: number): Promise<void> {
  await run(
    db,
    refoldTables
      .updateTable('refold.verifications')
      .set({
        round: sql`round + 1`,
        owner: null,
        busy_until: null,
        next_at: sql`now()`,
        samples: null,
        found_at: null,
        differences: null,
      })
      .where('name', '=', name)
      .where('version', '=', version),
  );
}

/** The last completed verification of a kind, and the last differences that any of them found. */
export interface StoredVerification {
  readonly name: string;
  readonly version: number;
  readonly kind: VerificationKind;
  readonly rounds: bigint;
  readonly endedAt: string | null;
  readonly position: GlobalPosition | null;
  readonly rowsCompared: bigint | null;
  readonly differences: bigint | null;
  readonly totalRowsCompared: bigint;
  readonly totalDifferences: bigint;
  readonly samples: readonly unknown[] | null;
  readonly foundAt: string | null;
}

const storedVerifications = refoldTables
  .selectFrom('refold.verifications')
  .select([
    'name',
    'version',
    'kind',
    'round as rounds',
    'ended_at as endedAt',
    'position',
    'rows_compared as rowsCompared',
    'differences',
    'total_rows_compared as totalRowsCompared',
    'total_differences as totalDifferences',
    'samples',
    'found_at as foundAt',
  ])
  .orderBy('name')
  .orderBy('version')
  .orderBy('kind');

export async function readVerifications(db: Queryable): Promise<StoredVerification[]> {
  return run(db, storedVerifications, 'read verifications');
}
