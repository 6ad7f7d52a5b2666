import DataLoader from 'dataloader';
import type pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { type ConnectionOptions, connectionConfig, SessionClient } from '../postgres/database.ts';
import { translateDatabaseError } from '../postgres/database-errors.ts';
import { settleSession } from '../postgres/session-settings.ts';
import { processorLockKey } from '../server/lock-keys.ts';
import type { Ownership } from './ownership.ts';
import { createStallGuard, type StallGuard } from './stall-guard.ts';

export interface AdvisoryOwnershipOptions extends Pick<ConnectionOptions, 'url' | 'answerTimeoutMs' | 'prepare'> {
  /** How long an owner may be silent, in seconds. After that it loses ownership, and other processes may end its session. @default 30 */
  readonly leaseSeconds?: number;
  /** The share of that time after which a heartbeat is sent. @default 1/3 */
  readonly renewalFactor?: number;
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly now?: () => number;
}

interface Bound {
  /** In milliseconds. */
  readonly lasts: number;
  /** In milliseconds. */
  readonly beatEvery: number;
  readonly now: () => number;
}

/**
 * Ownership by session-level advisory locks on one connection of this process. They are free as soon as the process or its connection ends.
 * A heartbeat keeps the session active. A server does not notice that a host hangs or is cut off. A process that finds a lock taken
 * therefore ends the session that holds it, if that session has been silent for too long. Not for poolers in transaction mode, which share
 * sessions.
 */
export function createAdvisoryOwnership(options: AdvisoryOwnershipOptions): Ownership {
  const { leaseSeconds = 30, renewalFactor = 1 / 3, now = () => performance.now(), prepare = true } = options;
  const lasts = leaseSeconds * 1000;
  const bound = { lasts, beatEvery: lasts * renewalFactor, now };
  let session: Promise<Session> | undefined;
  let closed = false;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function current(): Promise<Session> {
    session ??= openSession(options, bound, () => {
      session = undefined;
    });
    return session;
  }

  /** The session that holds each lock now; null if another process holds it. */
  async function acquire(keys: readonly bigint[]): Promise<(Session | null)[]> {
    try {
      const opened = await current().catch((error: unknown) => {
        session = undefined;
        throw error;
      });
      const rows = await opened.query<{ held: boolean }>(
        'select pg_try_advisory_lock(key) as held from unnest($1::bigint[]) with ordinality as wanted (key, place) order by place',
        [keys],
        prepare ? { name: 'try locks' } : {},
      );
      const refused = keys.filter((_, index) => !rows[index]?.held);
      if (refused.length > 0 && now() - lookedAt >= bound.lasts / looksInBound) {
        lookedAt = now();
        await endSilentHolders(opened, refused, leaseSeconds);
      }
      return rows.map(({ held }) => (held ? opened : null));
    } catch (error) {
      throw translateDatabaseError(error, options.url);
    }
  }

  // Attempts of one moment share a statement.
  const attempts = new DataLoader(acquire, { cache: false });

  return {
    async tryAcquire(unit) {
      if (closed) return null;
      const key = processorLockKey(unit);
      const opened = await attempts.load(key);
      if (!opened) return null;
      return {
        lost: opened.ended.signal,
        verify: () => opened.verify(),
        async release() {
          if (!opened.ended.signal.aborted) await opened.query('select pg_advisory_unlock($1)', [key]);
        },
      };
    },
    async close() {
      closed = true;
      const opened = await session?.catch(() => undefined);
      await Promise.all([opened?.client.end(), opened?.guard?.close()]);
    },
  };
}

// How many times per bound a waiting process checks for a silent holder. The interval adds little to the time of a failover.
const looksInBound = 10;

/** A statement with a name is prepared once. */
interface Named {
  readonly name?: string;
}

interface Session {
  readonly client: pg.Client;
  readonly guard: StallGuard | undefined;
  /** Runs one statement at a time, in order. */
  query<Row extends object>(text: string, values?: readonly unknown[], named?: Named): Promise<Row[]>;
  readonly ended: AbortController;
  /** Checks now, even if timers have not run yet. */
  verify(): void;
}

async function openSession(options: AdvisoryOwnershipOptions, bound: Bound, onEnd: () => void): Promise<Session> {
  const client = new SessionClient(connectionConfig({ ...options, applicationName: 'refold-owner' }));
  const ended = new AbortController();
  let validUntil = Number.POSITIVE_INFINITY;
  let last: Promise<unknown> = Promise.resolve();
  let expiry: NodeJS.Timeout | undefined;
  let guard: StallGuard | undefined;

  function end(reason: string): void {
    if (ended.signal.aborted) return;
    const cause = new RefoldError('DATABASE_UNAVAILABLE', reason);
    ended.abort(new RefoldError('PROCESSOR_FENCED', reason, {}, { cause }));
    onEnd();
  }

  // By this process's clock, counted from before the statement was sent. Not later than the server's view.
  function keepUntil(time: number): void {
    validUntil = time;
    clearTimeout(expiry);
    expiry = setTimeout(endWhenDue, Math.max(0, time - bound.now()));
  }

  function endWhenDue(): void {
    if (bound.now() < validUntil || ended.signal.aborted) return;
    const kept = bound.now() - (guard?.keptMsAgo ?? Number.POSITIVE_INFINITY) + bound.lasts;
    if (kept > bound.now()) keepUntil(kept);
    else {
      end(`The database has not responded for ${bound.lasts / 1000} s, so another process may own the unit now.`);
      client.connection.stream.destroy();
    }
  }

  function verify(): void {
    endWhenDue();
    ended.signal.throwIfAborted();
  }

  async function send<Row extends object>(text: string, values: readonly unknown[], named: Named): Promise<Row[]> {
    const sentAt = bound.now();
    const { rows } = await client.query<Row>({ text, values: [...values], ...named });
    if (!ended.signal.aborted) keepUntil(sentAt + bound.lasts);
    return rows;
  }

  function query<Row extends object>(text: string, values: readonly unknown[] = [], named: Named = {}): Promise<Row[]> {
    const result = last.then(() => send<Row>(text, values, named));
    last = result.catch(() => {});
    return result;
  }

  client.on('error', () => {});
  await client.connect();
  let heartbeat: NodeJS.Timeout | undefined;
  client.on('end', () => {
    clearInterval(heartbeat);
    clearTimeout(expiry);
    void guard?.close();
    end('The connection that held the ownership has ended.');
  });
  await settleSession(client);
  const beat = () => void query('select 1').catch(() => {}); // 'end' follows
  if (!ended.signal.aborted) {
    heartbeat = setInterval(beat, bound.beatEvery);
    guard = createStallGuard({ url: options.url, applicationName: guardOf(processOf(client)), lasts: bound.lasts });
    guard.keep({ text: 'select 1', values: [], rows: 1 });
  }
  return { client, guard, query, ended, verify };
}

/** The application name of a session that is a sign of life of another one, while the process of both stalls. */
function guardOf(pid: number | string): string {
  return `refold-owner-guard ${pid}`;
}

/** The server's process of a session; a field of the driver that its types lack. */
function processOf(client: pg.Client & { readonly processID?: number }): number {
  return client.processID ?? 0;
}

/**
 * Ends the sessions that hold these locks and whose heartbeat is overdue, unless their guard gives a sign of life. `refold.advisory_locks` names the
 * session, and `pg_stat_activity` knows when it last began or ended a statement. Ending it releases its locks. A role may end its own sessions.
 */
async function endSilentHolders(session: Session, keys: readonly bigint[], seconds: number): Promise<void> {
  await session
    .query(
      `select pg_terminate_backend(activity.pid)
       from refold.advisory_locks as held
       join pg_stat_activity as activity using (pid)
       where held.key = any ($1::bigint[])
         and held.granted
         and activity.state_change < clock_timestamp() - make_interval(secs => $2)
         and not exists (
           select from pg_stat_activity as guard
           where guard.application_name = $3 || activity.pid
             and guard.state_change >= clock_timestamp() - make_interval(secs => $2)
         )`,
      [keys, seconds, guardOf('')],
    )
    .catch(() => {}); // lacks the privilege: the server's keepalive ends it later
}
