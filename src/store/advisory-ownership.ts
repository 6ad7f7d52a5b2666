import type pg from 'pg';
import { RefoldError } from '../errors.ts';
import { connectionConfig, SessionClient } from './database.ts';
import { processorLockKey } from './lock-keys.ts';
import type { Ownership } from './ownership.ts';
import { settleSession } from './session-settings.ts';

/**
 * Ownership by session-level advisory locks on one connection of this process: free the moment that the process or its connection ends.
 * Not for transaction-mode poolers, which share sessions.
 */
export function createAdvisoryOwnership(url: string): Ownership {
  let session: Promise<Session> | undefined;
  let closed = false;

  async function current(): Promise<Session> {
    session ??= openSession(url, () => {
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
      const [row] = await opened.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', key);
      if (!row?.held) return null;
      return {
        lost: opened.ended.signal,
        verify: () => opened.ended.signal.throwIfAborted(),
        async release() {
          if (!opened.ended.signal.aborted) await opened.query('select pg_advisory_unlock($1)', key);
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

interface Session {
  readonly client: pg.Client;
  /** One at a time, in the order in which they are asked. */
  query<Row extends object>(text: string, key: bigint): Promise<Row[]>;
  readonly ended: AbortController;
}

async function openSession(url: string, onEnd: () => void): Promise<Session> {
  const client = new SessionClient(connectionConfig({ url, applicationName: 'refold-owner' }));
  const ended = new AbortController();
  client.on('error', () => {});
  client.on('end', () => {
    ended.abort(new RefoldError('PROCESSOR_FENCED', 'The connection that held the ownership has ended.'));
    onEnd();
  });
  await client.connect();
  await settleSession(client);
  // A machine that vanishes leaves its session, and with it the locks, to the server's keepalive: half an hour by default, 25 seconds here.
  await client.query('set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3');
  let last: Promise<unknown> = Promise.resolve();
  return {
    client,
    ended,
    query<Row extends object>(text: string, key: bigint) {
      const result = last.then(async () => (await client.query<Row>(text, [key])).rows);
      last = result.catch(() => {});
      return result;
    },
  };
}
