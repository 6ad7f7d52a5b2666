import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import { defaultStore } from '../../projections/projection/projection.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage, sqlStateOf } from '../../store/postgres/database-errors.ts';
import {
  type LogPlace,
  type PrimaryState,
  type ReplicaState,
  readPrimaryState,
  readReplicaState,
  type WalPlace,
} from '../../store/server/replica-state.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { reasonOf } from '../../thrown.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** A streaming replica of a read store that may serve queries as long as its lag is within the limit. */
export interface Replica {
  /** Its pool for reads. */
  readonly db: Database;
  /** Whether the replica may serve an operation now: its lag is within the limit, and it has all tables that the map has in its store. */
  accepts(versions: VersionMap): boolean;
  /** Whether a read failed because of the replica. If so, the replica is not used until the next successful check. */
  blame(error: unknown): boolean;
  /** Stops using the replica until the next successful check: its history may now differ from the primary's. */
  forget(): void;
  /** The operations sent to the replica since the start of the process, and those sent to the primary because the replica lagged. */
  readonly sent: { readonly replica: number; readonly primary: number };
  /** The upper bound of its lag behind the primary, in milliseconds; Infinity if unknown. */
  lag(): number;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  /** The name of the read store. */
  readonly store: string;
  readonly primary: Queryable;
  readonly db: Database;
  /** The pool for checks, which must not wait for reads. */
  readonly watch: Database;
  /** Milliseconds. */
  readonly maxLag: number;
  readonly logger: Logger;
}

/** The primary had reached this place when it was asked, or a moment later. */
interface Sample extends WalPlace {
  readonly askedAt: number;
}

// The age of a check must be small compared with the allowed lag, and checks must be rare enough to cost the servers nothing.
const looksInLag = 5;
const leastPause = 20;
const longestPause = 1000;

/**
 * Polls the primary's WAL position, and how far the replica has replayed. When the replica has replayed a position, it holds everything that the
 * primary held at that time. So no clocks are compared, an idle primary causes no lag, and the lag of a disconnected replica grows by itself.
 */
export function createReplica({ store, primary, db, watch, maxLag, logger }: ReplicaOptions): Replica {
  const pause = Math.min(Math.max(maxLag / looksInLag, leastPause), longestPause);
  const what = replicaName(store);
  const isApart = primary.elsewhere?.log !== undefined;
  let samples: readonly Sample[] = [];
  let currentAt = Number.NEGATIVE_INFINITY;
  let tables = createTableCheck(store, '');
  /** What the replica reported at the previous check. The primary and the log must have it by now. */
  let last: ReplicaState | undefined;
  /** What the log had at the previous check. Undefined before the first one. A log in another database is asked about the rest only. */
  let verified: ReadonlySet<string> | undefined;
  let said: string | undefined;
  let closed = false;
  const sent = { replica: 0, primary: 0 };

  async function look(): Promise<void> {
    const askedAt = performance.now();
    const before = last;
    const asked = before?.known.filter((one) => !isApart || !verified?.has(textOf(one))) ?? [];
    const now = await readPrimaryState(primary, asked);
    const state = await readReplicaState(watch);
    if (last !== before) return; // forgotten meanwhile
    last = state;
    const other = before && historyProblem(before, now, isApart);
    // Only what was sampled of a history that is known to be the same says how far behind the replica is.
    const isSame = before !== undefined && other === undefined;
    const recent = samples.filter((sample) => askedAt - sample.askedAt <= maxLag);
    samples = isSame ? [...recent, { ...now.place, askedAt }] : [];
    const problem = replicaProblem(state, now) ?? other;
    if (problem !== undefined) return leave(problem);
    if (!isSame) return;
    if (now.lost === false) verified = new Set(before.known.map(textOf));
    else if (verified === undefined) return leave('the log does not respond, and may not have the events of its rows');
    if (state.tables !== tables.text) tables = createTableCheck(store, state.tables);
    const reached = samples.findLast((sample) => isAtLeast(state.place, sample));
    if (!reached) return leave(`it is more than ${maxLag} ms behind the primary`, 'info');
    currentAt = reached.askedAt;
    if (said !== undefined) logger.info(`${what} is read from again`);
    said = undefined;
  }

  // Lag is normal for a replica. Any other problem needs an operator's attention.
  function leave(problem: string, level: 'info' | 'warn' = 'warn'): void {
    currentAt = Number.NEGATIVE_INFINITY;
    if (closed || said === problem) return;
    said = problem;
    logger[level](`${what} is not read from, the primary answers: ${problem}`);
  }

  const lag = () => performance.now() - currentAt;
  const task = startPeriodicTask(pause, look, (error) => leave(reasonOf(error)));

  return {
    db,
    lag,
    sent,
    forget() {
      samples = [];
      last = undefined;
      verified = undefined;
      currentAt = Number.NEGATIVE_INFINITY;
    },
    accepts(versions) {
      const accepted = lag() <= maxLag && tables.hasAll(versions);
      sent[accepted ? 'replica' : 'primary']++;
      return accepted;
    },
    blame(error) {
      if (!(error instanceof RefoldError)) return false;
      const failed = isOutage(error) || (error.code === 'DATABASE_ERROR' && sqlStateOf(error) !== timedOut);
      if (failed) leave(error.message);
      return failed;
    },
    async close() {
      closed = true;
      await task.stop();
      await Promise.all([watch.close(), db.close()]);
    },
  };
}

// A statement that times out would do so on the primary too. A conflict with the replay has another SQLSTATE.
const timedOut = '57014';

/** How the log names the replica of a read store. */
export function replicaName(store: string): string {
  return store === defaultStore ? 'the replica' : `the replica of the read store '${store}'`;
}

/** Why a server is no replica of the primary. */
export function replicaProblem({ place }: ReplicaState, { place: primary }: PrimaryState): string | undefined {
  if (place === null) return 'it is no standby: it was promoted, or never was one';
  if (place.system !== primary.system) return 'it is a replica of another server';
  if (place.database !== primary.database) return 'it is another database than the one of the primary';
  if (place.timeline !== primary.timeline)
    return `it follows timeline ${place.timeline}, and the primary is on ${primary.timeline}`;
  return undefined;
}

/** Why the two have other histories. The primary was asked after the replica, and about what the replica knows. */
export function historyProblem(
  { place }: ReplicaState,
  { place: primary, lost }: PrimaryState,
  isApart: boolean,
): string | undefined {
  if (lost)
    return isApart
      ? 'it has rows of events that the log does not have: another history'
      : 'it has events that the primary does not have: another history';
  if (place && place.timeline === primary.timeline && place.at > primary.at)
    return 'it has replayed more than the primary has written: another history';
  return undefined;
}

function textOf({ position, anchor }: LogPlace): string {
  return `${position} ${anchor}`;
}

function isAtLeast(place: WalPlace | null, sample: Sample): boolean {
  return place !== null && place.timeline === sample.timeline && place.at >= sample.at;
}

/** Whether a replica has the tables that a version map has in its store. Asked for each operation, so the last answer is kept. */
function createTableCheck(store: string, text: string) {
  const tables = new Set(text.split('\n'));
  let last: { readonly versions: VersionMap; readonly hasAll: boolean } | undefined;
  return {
    text,
    hasAll(versions: VersionMap): boolean {
      if (last?.versions !== versions) {
        const own = [...versions.served.values()].filter((one) => one.active && one.projection.store === store);
        const hasAll = own.every(({ projection: { id, tableName } }) => tables.has(`${id} ${tableName}`));
        last = { versions, hasAll };
      }
      return last.hasAll;
    },
  };
}
