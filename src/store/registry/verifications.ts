import type { GlobalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../postgres/statement.ts';

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
  const rows = await db.query<{ round: bigint }>({
    text: `
      insert into refold.verifications (name, version, kind, owner, busy_until)
      values ($1, $2, $3, $4, now() + make_interval(secs => $5))
      on conflict (name, version, kind) do update
        set owner = excluded.owner, busy_until = excluded.busy_until
        where verifications.next_at <= now()
          and (verifications.busy_until is null or verifications.busy_until < now())
      returning round`,
    values: [name, version, kind, owner, busySeconds],
  });
  return rows[0] && { ...wanted, round: rows[0].round };
}

/** Extends the claim. Returns false if another process has taken over. */
export async function renewVerification(db: Queryable, claim: VerificationClaim): Promise<boolean> {
  const rows = await db.query({
    text: `
      update refold.verifications
      set busy_until = now() + make_interval(secs => $6)
      where name = $1 and version = $2 and kind = $3 and owner = $4 and round = $5
      returning name`,
    values: [claim.name, claim.version, claim.kind, claim.owner, claim.round, busySeconds],
  });
  return rows.length > 0;
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
  const rows = await db.query({
    text: `
      update refold.verifications
      set
        round = round + 1,
        owner = null,
        busy_until = null,
        next_at = now() + make_interval(secs => $10),
        ended_at = now(),
        position = $6,
        rows_compared = $7,
        differences = $8,
        total_rows_compared = total_rows_compared + $7,
        total_differences = total_differences + $8,
        samples = case when $8 > 0 then $9 else samples end,
        found_at = case when $8 > 0 then now() else found_at end
      where name = $1 and version = $2 and kind = $3 and owner = $4 and round = $5
      returning name`,
    values: [
      claim.name,
      claim.version,
      claim.kind,
      claim.owner,
      claim.round,
      position,
      rowsCompared,
      differences,
      JSON.stringify(samples),
      nextInSeconds,
    ],
  });
  return rows.length > 0;
}

/** Releases an unfinished verification for the next process. */
export async function releaseVerification(db: Queryable, claim: VerificationClaim, nextInSeconds = 0): Promise<void> {
  await db.query({
    text: `
      update refold.verifications
      set owner = null, busy_until = null, next_at = now() + make_interval(secs => $6)
      where name = $1 and version = $2 and kind = $3 and owner = $4 and round = $5`,
    values: [claim.name, claim.version, claim.kind, claim.owner, claim.round, nextInSeconds],
  });
}

/** Call this when the version's rows were replaced: deletes the results for the old rows and cancels a running verification. */
export async function forgetDifferences(db: Queryable, name: string, version: number): Promise<void> {
  await db.query({
    text: `
      update refold.verifications
      set round = round + 1, owner = null, busy_until = null, next_at = now(), samples = null, found_at = null, differences = null
      where name = $1 and version = $2`,
    values: [name, version],
  });
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

export async function readVerifications(db: Queryable): Promise<StoredVerification[]> {
  return db.query<StoredVerification>({
    name: 'read verifications',
    text: `
      select
        name,
        version,
        kind,
        round as rounds,
        ended_at as "endedAt",
        position,
        rows_compared as "rowsCompared",
        differences,
        total_rows_compared as "totalRowsCompared",
        total_differences as "totalDifferences",
        samples,
        found_at as "foundAt"
      from refold.verifications
      order by name, version, kind`,
  });
}
