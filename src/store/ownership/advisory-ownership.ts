import type pg from 'pg';
import { RefoldError } from '../../errors.ts';
import { connectionConfig, type DatabaseOptions, SessionClient } from '../postgres/database.ts';
import { settleSession } from '../postgres/session-settings.ts';
import { processorLockKey } from '../server/lock-keys.ts';
import type { Ownership } from './ownership.ts';

export interface AdvisoryOwnershipOptions extends Pick<DatabaseOptions, 'url' | 'answerTimeoutMs'> {
  /** For how long nothing may be heard of an owner, in seconds; then its right ends, and others may end its session. @default 30 */
  readonly leaseSeconds?: number;
  /** A clock that never steps back, in milliseconds. @default performance.now */
  readonly now?: () => number;
}

interface Bound {
  /** Milliseconds. */
  readonly lasts: number;
  readonly now: () => number;
}

/**
 * Ownership by session-level advisory locks on one connection of this process: free the moment that the process or its connection ends.
 * A heartbeat keeps the session young. A server does not notice that a host hangs or is cut off, so whoever finds a lock taken ends the
 * session that holds it, if that is older than the bound. Not for transaction-mode poolers, which share sessions.
 */
export function createAdvisoryOwnership(options: AdvisoryOwnershipOptions): Ownership {
  const { leaseSeconds = 30, now = () => performance.now() } = options;
  const bound = { lasts: leaseSeconds * 1000, now };
  let session: Promise<Session> | undefined;
  let closed = false;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function current(): Promise<Session> {
    session ??= openSession(options, bound, () => {
      session = undefined;
    });
    return session;
  }

  return {
    async tryAcquire(unit) {
      if (closed) return null;
      const opened = await current().catch((error: unknown) => {
        session = undefined;
        throw error;
      });
      const key = processorLockKey(unit);
      const [row] = await opened.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [key]);
      if (!row?.held) {
        if (now() - lookedAt < bound.lasts / looksInBound) return null;
        lookedAt = now();
        await endSilentHolder(opened, key, leaseSeconds);
        return null;
      }
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
      await opened?.client.end();
    },
  };
}

// So many heartbeats may be late before the right ends.
const heartbeatsInBound = 3;

// How often whoever waits for locks looks whether a holder is silent: a small part of what a fail-over may take.
const looksInBound = 10;

interface Session {
  readonly client: pg.Client;
  /** One at a time, in the order in which they are asked. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  readonly ended: AbortController;
  /** Looks at this moment, whatever timers have not run yet. */
  verify(): void;
}

async function openSession(options: AdvisoryOwnershipOptions, bound: Bound, onEnd: () => void): Promise<Session> {
  const client = new SessionClient(connectionConfig({ ...options, applicationName: 'refold-owner' }));
  const ended = new AbortController();
  let validUntil = Number.POSITIVE_INFINITY;
  let last: Promise<unknown> = Promise.resolve();
  let expiry: NodeJS.Timeout | undefined;

  function end(reason: string): void {
    if (ended.signal.aborted) return;
    ended.abort(new RefoldError('PROCESSOR_FENCED', reason));
    onEnd();
  }

  // By this process's clock, counted from before the statement was sent: not later than what the server has.
  function keepUntil(time: number): void {
    validUntil = time;
    clearTimeout(expiry);
    expiry = setTimeout(endWhenDue, Math.max(0, time - bound.now()));
  }

  function endWhenDue(): void {
    if (bound.now() < validUntil || ended.signal.aborted) return;
    end(`Nothing was heard of the database for ${bound.lasts / 1000} s, so another process may own the unit now.`);
    client.connection.stream.destroy();
  }

  function verify(): void {
    endWhenDue();
    ended.signal.throwIfAborted();
  }

  async function send<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
    const sentAt = bound.now();
    const { rows } = await client.query<Row>(text, [...values]);
    if (!ended.signal.aborted) keepUntil(sentAt + bound.lasts);
    return rows;
  }

  function query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const result = last.then(() => send<Row>(text, values));
    last = result.catch(() => {});
    return result;
  }

  client.on('error', () => {});
  await client.connect();
  let heartbeat: NodeJS.Timeout | undefined;
  client.on('end', () => {
    clearInterval(heartbeat);
    clearTimeout(expiry);
    end('The connection that held the ownership has ended.');
  });
  await settleSession(client);
  const beat = () => void query('select 1').catch(() => {}); // 'end' follows
  if (!ended.signal.aborted) heartbeat = setInterval(beat, bound.lasts / heartbeatsInBound);
  return { client, query, ended, verify };
}

/** Ends the session that holds the lock, where nothing was heard of it for longer than its heartbeat may be late. */
async function endSilentHolder(session: Session, key: bigint, seconds: number): Promise<void> {
  await session
    .query(
      `select pg_terminate_backend(activity.pid)
       from pg_locks as held
       join pg_stat_activity as activity using (pid)
       where held.locktype = 'advisory' and held.objsubid = 1 and held.granted
         and held.database = (select oid from pg_database where datname = current_database())
         and (held.classid::bigint << 32 | held.objid::bigint) = $1
         and activity.state_change < clock_timestamp() - make_interval(secs => $2)`,
      [key, seconds],
    )
    .catch(() => {}); // not allowed to end it: the server's keepalive does
}
