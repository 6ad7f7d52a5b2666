import type { Socket } from 'node:net';
import pg from 'pg';

/** This process closed the connection because the server sent nothing while a statement was running. */
export class SilentConnection extends Error {
  override readonly name = 'SilentConnection';
}

/** What the server does for a session: it works, waits for bytes to or from the client, or neither. */
export type ServerActivity = 'working' | 'waiting-for-client' | 'none';

/** Asks the server over a separate connection what it does for the session of another connection. */
export type ServerProbe = (client: pg.Client) => Promise<ServerActivity>;

export interface AnswerDeadline {
  /** How long the server may send no byte while a statement runs, in milliseconds. */
  readonly afterMs: number;
  /** Called at the deadline. Without it, the connection is closed at once: for connections whose statements are all short. */
  readonly probe?: ServerProbe | undefined;
}

// Silence is detected at most a quarter later than `afterMs`. It is measured in timer ticks, not by the clock: a process that was suspended
// has not waited for its server.
const looks = 4;

/**
 * Closes a connection on which the server is silent. Its statements then fail instead of waiting forever. A long statement is not silence:
 * at the deadline another connection asks the server, which reports that it is working on it.
 */
export function closeWhenSilent(client: pg.Client, { afterMs, probe }: AnswerDeadline): void {
  const stream = client.connection.stream as Socket; // the types allow other streams; with TLS it is the TLS socket
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
    // If the server waits for the client, that is progress only while this side sends: COPY.
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
  // A field of the driver that its types lack. False from the start of a statement to its end; in a pipeline, to the end of all.
  readonly readyForQuery?: boolean;
}

function isWaiting(client: pg.Client & Busy): boolean {
  return client.readyForQuery === false;
}

async function activityOf(client: pg.Client, probe: ServerProbe | undefined): Promise<ServerActivity> {
  try {
    return (await probe?.(client)) ?? 'none';
  } catch (error) {
    // A server that refuses the probe (it is starting, or has no connection left) is reachable: ask again later.
    return error instanceof pg.DatabaseError ? 'working' : 'none';
  }
}

/** If one connection is silent, the idle ones of the pool most likely are too. Opening new ones is cheaper than testing them. */
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
  /** The configuration of the probed connections. */
  readonly config: pg.ClientConfig;
  /**
   * Whether a connection is a session of its own. Behind a pooler it is not: the statement of the silent connection is then recognized by
   * its text.
   */
  readonly sessions: boolean;
  readonly afterMs: number;
  /** How long the probe may take, including its connection, in milliseconds. */
  readonly limitMs: number;
}

interface ActiveSession {
  readonly pid: number;
  /** Cut off by the server at `track_activity_query_size`. Empty if the server does not track activity. */
  readonly query: string;
  readonly waits: boolean;
}

/** Concurrent probes of one host share one query. */
export function createServerProbe({ config, sessions, afterMs, limitMs }: ServerProbeOptions): ServerProbe {
  const asked = new Map<string, Promise<readonly ActiveSession[]>>();

  return async (silent) => {
    const host = `${silent.host}:${silent.port}`;
    const active = asked.get(host) ?? readActiveSessions(clientFor(silent), { afterMs, limitMs });
    asked.set(host, active);
    const sessionsAtWork = await active.finally(() => asked.delete(host));
    const { processID, _activeQuery } = silent as pg.Client & Inner;
    const own = sessionsAtWork.filter(({ pid, query }) =>
      sessions ? pid === processID : isSameStatement(query, _activeQuery?.text),
    );
    if (own.length === 0) return 'none';
    return own.every(({ waits }) => waits) ? 'waiting-for-client' : 'working';
  };

  /** Connects to the same server if the URL lists several. */
  function clientFor({ host, port }: pg.Client): pg.Client {
    return Object.assign(new pg.Client(config), { host, port });
  }
}

// Fields of the driver that its types lack.
interface Inner {
  readonly processID?: number;
  readonly _activeQuery?: { readonly text?: string } | null;
}

// The server keeps at least 99 bytes of a text, less a cut character.
const leastKept = 96;

/** Whether a statement that the server reports is the given one. If one of the texts is unknown, it may be. */
function isSameStatement(reported: string, text: string | undefined): boolean {
  if (text === undefined || reported === '' || reported === text) return true;
  return Buffer.byteLength(reported) >= leastKept && text.startsWith(reported);
}

/** This user's statements that have been running for about as long as the silence. */
async function readActiveSessions(
  client: pg.Client,
  { afterMs, limitMs }: Pick<ServerProbeOptions, 'afterMs' | 'limitMs'>,
): Promise<readonly ActiveSession[]> {
  client.on('error', () => {});
  const limit = setTimeout(() => client.connection.stream.destroy(), limitMs);
  try {
    await client.connect();
    // 'disabled': the server does not track activity (track_activities), so the session may be working.
    const { rows } = await client.query<ActiveSession>(
      `select pid, coalesce(query, '') as query, coalesce(wait_event in ('ClientRead', 'ClientWrite'), false) as waits
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
