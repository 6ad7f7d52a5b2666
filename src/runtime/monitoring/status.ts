import type { GlobalPosition } from '../../events/global-position.ts';
import { defaultStore } from '../../projections/projection/projection.ts';
import type { CanaryRule, VersionState } from '../../projections/projection/version-map.ts';
import type { EventLog } from '../../store/event-log.ts';
import { countDeadLetters } from '../../store/processors/dead-letters.ts';
import { type Lag, readLag, readLagWithin } from '../../store/processors/lag.ts';
import { readThroughput, type Throughput } from '../../store/processors/runs.ts';
import { type ReadStores, readEachStore } from '../../store/read-store.ts';
import { type CanaryFigures, readCanaryFigures } from '../../store/registry/canaries.ts';
import type { UncheckedRule } from '../../store/registry/inline-versions.ts';
import type { Pause } from '../../store/registry/pauses.ts';
import { type Rebuild, readAllRebuilds } from '../../store/registry/rebuilds.ts';
import { type RegisteredVersion, readRegistry } from '../../store/registry/registry.ts';
import { storedOnce } from '../../store/registry/stored-once.ts';
import { readVerifications, type StoredVerification } from '../../store/registry/verifications.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { ProcessorRetry } from '../../store/statements/stored-json.ts';
import { readTableProblems } from '../../store/tables/table-problems.ts';
import type { Difference } from '../verification/verify.ts';

/** The state and progress of one projection version. */
export interface VersionStatus {
  readonly name: string;
  readonly version: number;
  /** The read store that has it. */
  readonly store: string;
  readonly state: VersionState;
  /** The position after which it begins, if its table is partial: it holds only later events. Null if it is whole. */
  readonly startsAfter: GlobalPosition | null;
  /**
   * For an inline version: its rows commit with appends (`live`), a processor keeps them current (`building`), or appends that had entered it
   * must end first (`leaving`). Null for other versions.
   */
  readonly inline: 'building' | 'leaving' | 'live' | null;
  /** The unique values of an inline version, while nothing checks them and appends are refused; else null. */
  readonly unchecked: UncheckedRule | null;
  /** The state of its processor: `running` and `idle` with and without an owner, `stopped` after an error. */
  readonly processor: 'idle' | 'running' | 'stopped';
  /** All owners, if the version has partitions. */
  readonly owner: string | null;
  /** The lowest position of its partitions. */
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** Positions of the log between the two. Gaps that rolled back appends leave count too. */
  readonly lag: bigint;
  /** Events that it handles and has not folded yet; if it is far behind, those among the next 10,000 positions. */
  readonly lagEvents: bigint;
  /** Whether `lagEvents` counts them all. */
  readonly lagEventsExact: boolean;
  /** The age of the first of them; 0 if there is none. */
  readonly lagSeconds: number;
  /** Events folded since its table was first built. */
  readonly eventsFolded: bigint;
  /** Events that `onError: 'skip'` has left out of its table. */
  readonly eventsSkipped: bigint;
  /** How often `onError.retries` has tried an event again. */
  readonly retries: bigint;
  /** The event that it tries again now, before the policy applies; null if there is none. */
  readonly retrying: ProcessorRetry | null;
  /** Events folded per second in the last minute. */
  readonly eventsPerSecond: number;
  /** Why it does not become active by itself: held by an operator, by a condition of its declaration, or by a finding. */
  readonly heldReason: string | null;
  /** Who paused it, and why: nobody maintains it. Null if it is not paused. */
  readonly paused: Pause | null;
  /** Which clients it answers as a canary while it is only ready; null if it is no canary. */
  readonly canary: CanaryRule | null;
  /**
   * The canary's metrics beside those of the active version, over all gateways. Counts of the last ten seconds may be missing. Null if it is no
   * canary.
   */
  readonly canaryFigures: Omit<CanaryFigures, 'name' | 'version'> | null;
  readonly error: { readonly message: string; readonly at: string; readonly code?: string } | null;
  /** The columns whose index was dropped by hand: reads that need it scan the table. */
  readonly missingIndexes: readonly string[];
  /** Each partition, in order; one if the version is not partitioned. */
  readonly partitions: readonly PartitionStatus[];
  /** Events that could not be folded, and those waiting behind them. */
  readonly deadLetters: number;
  /** The last comparison of its rows with the log that found differences, otherwise the last one; null if there was none. */
  readonly verification: VersionVerification | null;
  /** What all its audits have compared and found. */
  readonly audited: { readonly rowsCompared: number; readonly differences: number };
  /** The progress of a rebuild of its table, beside it or in place; null if none is running. */
  readonly rebuild: Omit<Rebuild, 'name' | 'version' | 'tableName' | 'requestedAt'> | null;
}

/** The state and progress of one partition of a version. */
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
  /** The differences found by the last comparison. */
  readonly differences: number;
  /** The last differences found, at most 20, and when; kept until the rows are rebuilt. */
  readonly samples: readonly Difference[];
  readonly foundAt: string | null;
}

/** How far the status of many versions counts, for readers that come again and again. */
export interface StatusBounds {
  /** The dead letters of each version are counted up to this number. */
  readonly letters: number;
  /** How many positions of the log are visited in total to tell how far the versions are behind. */
  readonly positions: number;
}

/** The versions of all stores. */
export interface StatusOfStores {
  /** Of the stores that respond, ordered by name and version. */
  readonly versions: readonly VersionStatus[];
  /** The stores apart from the log that do not respond: their versions are missing. */
  readonly away: readonly string[];
}

/** @param bounds of all stores together; none: dead letters and what is behind are counted like in one store */
export async function readStatusOfStores(
  stores: ReadStores,
  log: EventLog,
  bounds?: StatusBounds,
): Promise<StatusOfStores> {
  const shares = stores.apart.length + 1;
  const share = bounds && { ...bounds, positions: Math.floor(bounds.positions / shares) };
  const { found, away } = await readEachStore(stores, ({ name, db }) => readStatusOf(db, log, name, share));
  return { versions: storedOnce(found.flat()), away };
}

/** Returns all versions of the registry, ordered by name and version. @param bounds none: dead letters are counted exactly */
export async function readStatus(db: Queryable, log: EventLog, bounds?: StatusBounds): Promise<VersionStatus[]> {
  return readStatusOf(db, log, defaultStore, bounds);
}

async function readStatusOf(
  db: Queryable,
  log: EventLog,
  store: string,
  bounds: StatusBounds | undefined,
): Promise<VersionStatus[]> {
  const registered = await readRegistry(db);
  const rebuilds = await readAllRebuilds(db);
  const letters = await countDeadLetters(db, bounds?.letters ?? null);
  const lags = bounds ? await readLagWithin(db, bounds.positions) : await readLag(db);
  const verifications = await readVerifications(db);
  const throughputs = await readThroughput(db);
  const figures = await readCanaryFigures(db);
  const problems = await readTableProblems(db);
  // Read after the checkpoints. Otherwise a checkpoint could be ahead of the head.
  const head = await log.head();
  const statusOf = (entry: RegisteredVersion): VersionStatus => ({
    name: entry.name,
    version: entry.version,
    store,
    state: entry.state,
    startsAfter: entry.startsAfter === 0n ? null : entry.startsAfter,
    inline: entry.inline,
    unchecked: entry.unchecked,
    processor: entry.status,
    owner: entry.owner,
    position: entry.checkpoint,
    head,
    lag: head - entry.checkpoint,
    ...lagOf(lags.filter(({ name, version }) => name === entry.name && version === entry.version)),
    eventsFolded: entry.eventsFolded,
    eventsSkipped: entry.eventsSkipped,
    retries: entry.retries,
    retrying: entry.retrying,
    eventsPerSecond: rateOf(
      throughputs.filter(({ name, version }) => name === entry.name && version === entry.version),
    ),
    heldReason: entry.heldReason,
    paused: entry.paused,
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
  });
  return registered.map(statusOf);
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

/** The lag of the processor furthest behind. Each processor counts all events of the version, even those of other partitions. */
function lagOf(lags: readonly Lag[]): Pick<VersionStatus, 'lagEvents' | 'lagEventsExact' | 'lagSeconds'> {
  const [furthest] = lags.toSorted((a, b) => Number(b.positions - a.positions));
  return {
    lagEvents: furthest?.events ?? 0n,
    lagEventsExact: furthest?.exact ?? true,
    lagSeconds: Math.max(0, ...lags.map(({ seconds }) => seconds)),
  };
}

/** The rate of its processors, without rebuilds, which fill another table. */
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
    samples: (shown.samples ?? []) as readonly Difference[], // written only by the audit and the activation
    foundAt: shown.foundAt,
  };
}
