import type { Logger } from 'pino';
import { RefoldError } from '../../errors.ts';
import type { VersionMap } from '../../projections/projection/version-map.ts';
import type { Database } from '../../store/postgres/database.ts';
import { isOutage, sqlStateOf } from '../../store/postgres/database-errors.ts';
import {
  type LastEvent,
  type ReplicaState,
  readPrimaryState,
  readReplicaState,
  type WalPlace,
} from '../../store/server/replica-state.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';

/** A streaming replica that may serve queries as long as its lag is within the limit. */
export interface Replica {
  /** Its pool for reads. */
  readonly db: Database;
  /** Whether the replica may serve an operation now: its lag is within the limit, and it has all tables of the map. */
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
export function createReplica({ primary, db, watch, maxLag, logger }: ReplicaOptions): Replica {
  const pause = Math.min(Math.max(maxLag / looksInLag, leastPause), longestPause);
  let samples: readonly Sample[] = [];
  let currentAt = Number.NEGATIVE_INFINITY;
  let tables: ReadonlySet<string> = new Set();
  /** The last event that the replica reported at the previous check. The primary must show the same event by now. */
  let last: LastEvent | undefined;
  let said: string | undefined;
  let closed = false;
  const sent = { replica: 0, primary: 0 };

  async function look(): Promise<void> {
    const askedAt = performance.now();
    const known = last;
    const { place, anchor } = await readPrimaryState(primary, known?.position ?? null);
    samples = [...samples.filter((sample) => askedAt - sample.askedAt <= maxLag), { ...place, askedAt }];
    const state = await readReplicaState(watch);
    last = state.last;
    const problem = problemOf(state, place);
    if (problem !== undefined) return leave(problem);
    if (known === undefined) return;
    if (known.anchor !== anchor) return leave('it has events that the primary does not have: another history');
    tables = tablesOf(state);
    const reached = samples.findLast((sample) => isAtLeast(state.place, sample));
    if (!reached) return leave(`it is more than ${maxLag} ms behind the primary`, 'info');
    currentAt = reached.askedAt;
    if (said !== undefined) logger.info('the replica is read from again');
    said = undefined;
  }

  // Lag is normal for a replica. Any other problem needs an operator's attention.
  function leave(problem: string, level: 'info' | 'warn' = 'warn'): void {
    currentAt = Number.NEGATIVE_INFINITY;
    if (closed || said === problem) return;
    said = problem;
    logger[level](`the replica is not read from, the primary answers: ${problem}`);
  }

  const lag = () => performance.now() - currentAt;
  const task = startPeriodicTask(pause, look, (error) => leave(error instanceof Error ? error.message : String(error)));

  return {
    db,
    lag,
    sent,
    forget() {
      samples = [];
      last = undefined;
      currentAt = Number.NEGATIVE_INFINITY;
    },
    accepts(versions) {
      const accepted = lag() <= maxLag && hasAll(versions, tables);
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

function problemOf({ place }: ReplicaState, primary: WalPlace): string | undefined {
  if (place === null) return 'it is no standby: it was promoted, or never was one';
  if (place.system !== primary.system) return 'it is a replica of another server';
  if (place.timeline !== primary.timeline)
    return `it follows timeline ${place.timeline}, and the primary is on ${primary.timeline}`;
  return undefined;
}

function isAtLeast(place: WalPlace | null, sample: Sample): boolean {
  return place !== null && place.timeline === sample.timeline && place.at >= sample.at;
}

function tablesOf({ versions }: ReplicaState): ReadonlySet<string> {
  return new Set(
    versions
      .filter(({ state }) => state === 'active' || state === 'ready')
      .map(({ name, version, tableName }) => `${name}@${version} ${tableName}`),
  );
}

function hasAll({ served }: VersionMap, tables: ReadonlySet<string>): boolean {
  for (const { active, projection } of served.values()) {
    if (active && !tables.has(`${projection.id} ${projection.tableName}`)) return false;
  }
  return true;
}
