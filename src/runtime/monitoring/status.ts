import type { GlobalPosition } from '../../events/global-position.ts';
import type { CanaryRule, VersionState } from '../../projections/declaration/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { countDeadLetters } from '../../store/processors/dead-letters.ts';
import { type Lag, readLag } from '../../store/processors/lag.ts';
import { readThroughput, type Throughput } from '../../store/processors/runs.ts';
import { type CanaryFigures, readCanaryFigures } from '../../store/registry/canaries.ts';
import { type Rebuild, readAllRebuilds } from '../../store/registry/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { readShadowStandings, type ShadowStanding } from '../../store/registry/shadows.ts';
import { readVerifications, type StoredVerification } from '../../store/registry/verifications.ts';
import { readTableProblems } from '../../store/tables/table-problems.ts';
import { shadowVerdict } from '../activation/shadow-gate.ts';
import type { Difference } from '../verification/verify.ts';

/** How one projection version fares. */
export interface VersionStatus {
  readonly name: string;
  readonly version: number;
  readonly state: VersionState;
  /**
   * Of an inline version, whether its rows commit with appends (`live`), are caught up behind them (`building`), or will be once the appends
   * that had entered it are over (`leaving`); null for the others.
   */
  readonly inline: 'building' | 'leaving' | 'live' | null;
  /** What its processor does: `running` and `idle` with and without an owner, `stopped` after an error. */
  readonly processor: 'idle' | 'running' | 'stopped';
  /** Of a version in partitions all of them. */
  readonly owner: string | null;
  /** Of a version in partitions the least of theirs. */
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** Positions of the log between the two; holes of rolled back appends count. */
  readonly lag: bigint;
  /** Events that it wants and has yet to fold; of a version far behind, those among the next 10,000 positions. */
  readonly lagEvents: bigint;
  /** Whether `lagEvents` counts them all. */
  readonly lagEventsExact: boolean;
  /** Age of the first of them; 0 where there is none. */
  readonly lagSeconds: number;
  /** Since its table was built for the first time. */
  readonly eventsFolded: bigint;
  /** Events that `onError: 'skip'` has left out of its table. */
  readonly eventsSkipped: bigint;
  /** Events that it folded a second, in the last minute. */
  readonly eventsPerSecond: number;
  /** Why it does not become active by itself: by an operator, by what its declaration waits for, or by what was found. */
  readonly heldReason: string | null;
  /** Who is answered by it although it is only ready; null where nobody is. */
  readonly canary: CanaryRule | null;
  /**
   * How it does since then, beside those whom the active version answers, over all gateways; what they counted in the last ten seconds may be
   * missing. Null where it is no canary.
   */
  readonly canaryFigures: Omit<CanaryFigures, 'name' | 'version'> | null;
  readonly error: { readonly message: string; readonly at: string; readonly code?: string } | null;
  /** The columns whose index was dropped by hand: reads that need it scan the table. */
  readonly missingIndexes: readonly string[];
  /** Each partition, in order; one where the version is not split. */
  readonly partitions: readonly PartitionStatus[];
  /** Events kept because they could not be folded, and those behind them. */
  readonly deadLetters: number;
  /** The last comparison of its rows with the log that found differences, or else the last one; null where there was none. */
  readonly verification: VersionVerification | null;
  /** What all its audits have compared and found. */
  readonly audited: { readonly rowsCompared: number; readonly differences: number };
  /** How far a rebuild of its table is, beside it or in place; null where none is under way. */
  readonly rebuild: Omit<Rebuild, 'name' | 'version' | 'tableName' | 'requestedAt'> | null;
}

/** How one partition of a version fares. */
export interface PartitionStatus {
  readonly partition: number;
  readonly processor: 'idle' | 'running' | 'stopped';
  readonly owner: string | null;
  readonly position: GlobalPosition;
  readonly lag: bigint;
  readonly error: { readonly message: string; readonly at: string } | null;
}

/** A comparison of a version's rows with the log: before its activation, or as an audit. */
export interface VersionVerification {
  readonly kind: 'activation' | 'audit';
  readonly endedAt: string;
  readonly position: GlobalPosition;
  readonly rowsCompared: number;
  /** Of the last comparison. */
  readonly differences: number;
  /** The last differences found, 20 at most, and when; they stay until the rows are built anew. */
  readonly samples: readonly Difference[];
  readonly foundAt: string | null;
}

/** All versions of the registry, in the order of their names and versions. */
export async function readStatus(db: Queryable, log: EventLog): Promise<VersionStatus[]> {
  const registered = await readRegistry(db);
  const rebuilds = await readAllRebuilds(db);
  const letters = await countDeadLetters(db);
  const lags = await readLag(db);
  const verifications = await readVerifications(db);
  const throughputs = await readThroughput(db);
  const standings = await readShadowStandings(db);
  const figures = await readCanaryFigures(db);
  const problems = await readTableProblems(db);
  // After the checkpoints, so that none of them is ahead of it.
  const head = await log.head();
  return registered.map((entry) => ({
    name: entry.name,
    version: entry.version,
    state: entry.state,
    inline: entry.inline,
    processor: entry.status,
    owner: entry.owner,
    position: entry.checkpoint,
    head,
    lag: head - entry.checkpoint,
    ...lagOf(lags.filter(({ name, version }) => name === entry.name && version === entry.version)),
    eventsFolded: entry.eventsFolded,
    eventsSkipped: entry.eventsSkipped,
    eventsPerSecond: rateOf(
      throughputs.filter(({ name, version }) => name === entry.name && version === entry.version),
    ),
    heldReason: entry.heldReason ?? heldByQueries(standings, entry),
    canary: entry.canary,
    canaryFigures: figuresOf(figures, entry),
    error: entry.error,
    missingIndexes:
      problems.find(({ name, version }) => name === entry.name && version === entry.version)?.missingIndexes ?? [],
    partitions: entry.partitions.map(({ partition, status, owner, checkpoint, error }) => ({
      partition,
      processor: status,
      owner,
      position: checkpoint,
      lag: head - checkpoint,
      error,
    })),
    deadLetters: letters.find(({ name, version }) => name === entry.name && version === entry.version)?.letters ?? 0,
    verification: verificationOf(
      verifications.filter(({ name, version }) => name === entry.name && version === entry.version),
    ),
    audited: auditedOf(
      verifications.find(
        ({ name, version, kind }) => name === entry.name && version === entry.version && kind === 'audit',
      ),
    ),
    rebuild: rebuilds.find(({ name, version }) => name === entry.name && version === entry.version) ?? null,
  }));
}

function figuresOf(
  all: readonly CanaryFigures[],
  { name, version }: RegisteredVersion,
): VersionStatus['canaryFigures'] {
  const found = all.find((one) => one.name === name && one.version === version);
  if (!found) return null;
  const { operations, errors, otherOperations, otherErrors } = found;
  return { operations, errors, otherOperations, otherErrors };
}

function heldByQueries(standings: readonly ShadowStanding[], { name, version }: RegisteredVersion): string | null {
  const standing = standings.find((one) => one.name === name && one.version === version);
  if (!standing) return null;
  const { outcome, said } = shadowVerdict(standing);
  return outcome === 'met' ? null : said;
}

/** Of the processor that is furthest behind: each counts the version's events, whichever of them are its own. */
function lagOf(lags: readonly Lag[]): Pick<VersionStatus, 'lagEvents' | 'lagEventsExact' | 'lagSeconds'> {
  const [furthest] = lags.toSorted((a, b) => Number(b.positions - a.positions));
  return {
    lagEvents: furthest?.events ?? 0n,
    lagEventsExact: furthest?.exact ?? true,
    lagSeconds: Math.max(0, ...lags.map(({ seconds }) => seconds)),
  };
}

/** Of its processors; a rebuild is work for another table. */
function rateOf(throughputs: readonly Throughput[]): number {
  return throughputs.reduce((sum, { kind, eventsPerSecond }) => sum + (kind === 'processor' ? eventsPerSecond : 0), 0);
}

function auditedOf(audit: StoredVerification | undefined): VersionStatus['audited'] {
  return { rowsCompared: Number(audit?.totalRowsCompared ?? 0), differences: Number(audit?.totalDifferences ?? 0) };
}

function verificationOf(verifications: readonly StoredVerification[]): VersionVerification | null {
  const ended = verifications.filter(({ endedAt }) => endedAt !== null);
  const last = ended.toSorted((a, b) => (String(a.endedAt) < String(b.endedAt) ? 1 : -1));
  const shown = last.find(({ foundAt }) => foundAt !== null) ?? last[0];
  if (!shown || shown.endedAt === null || shown.position === null) return null;
  return {
    kind: shown.kind,
    endedAt: shown.endedAt,
    position: shown.position,
    rowsCompared: Number(shown.rowsCompared ?? 0),
    differences: Number(shown.differences ?? 0),
    samples: (shown.samples ?? []) as readonly Difference[], // written by the audit and the activation only
    foundAt: shown.foundAt,
  };
}
