import type { Socket } from 'node:net';
import pg from 'pg';

/** This process closed the connection: the server sent nothing while a statement was under way. */
export class SilentConnection extends Error {
  override readonly name = 'SilentConnection';
}

/** What the server does for a session: it works, it waits for bytes to or from the client, or neither. */
export type ServerActivity = 'working' | 'waiting-for-client' | 'none';

/** Asks the server, through a connection of its own, what it does for the session of another connection. */
export type ServerProbe = (client: pg.Client) => Promise<ServerActivity>;

export interface AnswerDeadline {
  /** For how long the server may send no byte while a statement is under way, in milliseconds. */
  readonly afterMs: number;
  /** Asked at the deadline. Without it, silence is enough: for connections whose statements are all short. */
  readonly probe?: ServerProbe | undefined;
}

// The silence is seen within a quarter more than it may last. Looks are counted, not the clock: a process that was stopped for a while has
// not waited for its server.
const looks = 4;

/**
 * Closes a connection on which the server has fallen silent, so that its statements fail instead of waiting for ever. A long statement is no
 * silence: at the deadline another connection asks the server, which still works on it.
 */
export function closeWhenSilent(client: pg.Client, { afterMs, probe }: AnswerDeadline): void {
  const stream = client.connection.stream as Socket; // typed wider than what the driver makes; of TLS, its socket
  let received = 0;
  let sent = 0;
  let quiet = 0;
  let isAsking = false;

  const isSilent = () => isWaiting(client) && stream.bytesRead === received;

  async function ask(): Promise<void> {
    const activity = await activityOf(client, probe);
    const hasSent = stream.bytesWritten !== sent;
    sent = stream.bytesWritten;
    quiet = 0;
    // What the server waits for may be on its way only as long as this side sends: COPY.
    if (!isSilent() || activity === 'working' || (activity === 'waiting-for-client' && hasSent)) return;
    stream.destroy(new SilentConnection(`the server sent nothing for ${afterMs} ms`));
  }

  const timer = setInterval(() => {
    quiet = isSilent() ? quiet + 1 : 0;
    received = stream.bytesRead;
    if (quiet < looks || isAsking) return;
    isAsking = true;
    void ask().finally(() => {
      isAsking = false;
    });
  }, afterMs / looks);
  timer.unref();
  client.once('end', () => clearInterval(timer));
}

interface Busy {
  // Of the driver; its types leave it out. False from a statement's start to its end, in a pipeline to the end of all.
  readonly readyForQuery?: boolean;
}

function isWaiting(client: pg.Client & Busy): boolean {
  return client.readyForQuery === false;
}

async function activityOf(client: pg.Client, probe: ServerProbe | undefined): Promise<ServerActivity> {
  try {
    return (await probe?.(client)) ?? 'none';
  } catch (error) {
    // A server that refuses the question (it starts, or has no connection left) can be reached: ask again later.
    return error instanceof pg.DatabaseError ? 'working' : 'none';
  }
}

/** Where one connection is silent, those that wait in the pool are as silent, most likely. New ones are cheaper than to try them out. */
export function closeIdleOnSilence(pool: pg.Pool): void {
  const idle = new Set<pg.PoolClient>();
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('release', (_, client) => idle.add(client));
  pool.on('remove', (client) => idle.delete(client));
  pool.on('connect', (client) =>
    client.on('error', (error) => {
      if (!(error instanceof SilentConnection)) return;
      const suspects = [...idle];
      idle.clear();
      for (const suspect of suspects) suspect.emit('error', error);
    }),
  );
}

export interface ServerProbeOptions {
  /** As for the connections that it asks about. */
  readonly config: pg.ClientConfig;
  /** Whether a connection is a session of its own. Behind a pooler, any statement that is as old counts as that of the silent connection. */
  readonly sessions: boolean;
  readonly afterMs: number;
  /** How long the server may take for the answer, connection included, in milliseconds. */
  readonly limitMs: number;
}

interface ActiveSession {
  readonly pid: number;
  readonly waits: boolean;
}

/** One question serves all connections to a host that ask at the same time. */
export function createServerProbe({ config, sessions, afterMs, limitMs }: ServerProbeOptions): ServerProbe {
  const asked = new Map<string, Promise<readonly ActiveSession[]>>();

  return async (silent) => {
    const host = `${silent.host}:${silent.port}`;
    const active = asked.get(host) ?? readActiveSessions(clientFor(silent), { afterMs, limitMs });
    asked.set(host, active);
    const sessionsAtWork = await active.finally(() => asked.delete(host));
    const pid = (silent as pg.Client & { readonly processID?: number }).processID; // its types leave it out
    const own = sessionsAtWork.filter((session) => !sessions || session.pid === pid);
    if (own.length === 0) return 'none';
    return own.every(({ waits }) => waits) ? 'waiting-for-client' : 'working';
  };

  /** The same server, where the URL names several. */
  function clientFor({ host, port }: pg.Client): pg.Client {
    return Object.assign(new pg.Client(config), { host, port });
  }
}

/** The statements of this user that have been running for about as long as the silence. */
async function readActiveSessions(
  client: pg.Client,
  { afterMs, limitMs }: Pick<ServerProbeOptions, 'afterMs' | 'limitMs'>,
): Promise<readonly ActiveSession[]> {
  client.on('error', () => {});
  const limit = setTimeout(() => client.connection.stream.destroy(), limitMs);
  try {
    await client.connect();
    // 'disabled': the server keeps no record (track_activities), so nothing tells against the session.
    const { rows } = await client.query<ActiveSession>(
      `select pid, coalesce(wait_event in ('ClientRead', 'ClientWrite'), false) as waits
       from pg_stat_activity
       where datname = current_database()
         and usename = current_user
         and (state = 'active' and query_start <= clock_timestamp() - make_interval(secs => $1) or state = 'disabled')`,
      [afterMs / 2000],
    );
    await client.end();
    return rows;
  } finally {
    clearTimeout(limit);
    client.connection.stream.destroy();
  }
}
