import pg from 'pg';
import { type ConnectionOptions, connectionConfig, SessionClient } from './database.ts';
import { settleSession } from './session-settings.ts';

/**
 * Receives the payload of a notification. Receives undefined if notifications may have been missed: after listening has started, and after
 * each lost connection. The listener must then poll. It must not throw.
 */
export type NotificationListener = (payload: string | undefined) => void;

export interface Notifications {
  /** Listens to a channel. Returns a function that stops it. */
  on(channel: string, listener: NotificationListener): () => void;
  /** Whether notifications arrive at present. Polling is the fallback. */
  readonly connected: boolean;
  close(): Promise<void>;
}

export interface NotificationsOptions {
  readonly url: string;
  /** The name in `pg_stat_activity`. @default 'refold-listen' */
  readonly applicationName?: string;
  /** The first delay before a reconnect, in milliseconds. It doubles up to `maxBackoffMs`. @default 100 */
  readonly minBackoffMs?: number;
  /** @default 5000 */
  readonly maxBackoffMs?: number;
  /** See {@link ConnectionOptions}. Also the interval of heartbeats, because the connection is otherwise idle. */
  readonly answerTimeoutMs?: number;
}

/**
 * One listening connection for the whole process. It connects with the first listener, reconnects while there is one, and never throws. It
 * needs a direct connection: behind a pooler in transaction mode no notifications arrive.
 */
export function createNotifications(options: NotificationsOptions): Notifications {
  const { url, applicationName = 'refold-listen', minBackoffMs = 100, maxBackoffMs = 5000 } = options;
  const { answerTimeoutMs = 5000 } = options;
  const listeners = new Map<string, Set<NotificationListener>>();
  let client: pg.Client | undefined; // set while connected
  let listening = new Set<string>(); // channels of that connection
  let running: Promise<void> | undefined;
  let closed = false;
  let interruptPause = () => {};
  let heartbeat: Promise<unknown> = Promise.resolve();

  /** Connects if necessary and adjusts the connection's channels to the listeners. Runs once at a time. */
  function wake(): void {
    interruptPause();
    running ??= keepUp().finally(() => {
      running = undefined;
      if (!isInLine()) wake();
    });
  }

  function isInLine(): boolean {
    if (closed) return client === undefined;
    if (!client) return listeners.size === 0;
    return listeners.size === listening.size && [...listeners.keys()].every((channel) => listening.has(channel));
  }

  async function keepUp(): Promise<void> {
    for (let backoff = minBackoffMs; !isInLine(); ) {
      try {
        if (closed) return await disconnect();
        client ??= await connect();
        await followListeners(client);
        backoff = minBackoffMs;
      } catch {
        await disconnect();
        await pause(backoff * (0.5 + Math.random()));
        backoff = Math.min(backoff * 2, maxBackoffMs);
      }
    }
  }

  async function connect(): Promise<pg.Client> {
    const connecting = new SessionClient({
      ...connectionConfig({ url, applicationName, answerTimeoutMs, shortStatements: true }),
      keepAliveInitialDelayMillis: 10_000,
    });
    connecting.on('notification', ({ channel, payload }) => tell(channel, payload));
    connecting.on('error', () => {}); // 'end' follows
    connecting.on('end', () => {
      if (client === connecting) {
        forget();
        if (!closed) wake();
      }
    });
    await connecting.connect();
    try {
      await settleSession(connecting);
    } catch (error) {
      await connecting.end().catch(() => {});
      throw error;
    }
    // Nothing else is sent on this connection. Without a heartbeat, a dead network would look like an idle database.
    const beats = setInterval(() => {
      if (!running) heartbeat = connecting.query('select 1').catch(() => {}); // 'end' follows
    }, answerTimeoutMs);
    connecting.once('end', () => clearInterval(beats));
    return connecting;
  }

  async function followListeners(current: pg.Client): Promise<void> {
    await heartbeat;
    for (const channel of listening) {
      if (listeners.has(channel)) continue;
      await current.query(`unlisten ${pg.escapeIdentifier(channel)}`);
      listening.delete(channel);
    }
    for (const channel of [...listeners.keys()]) {
      if (listening.has(channel)) continue;
      await current.query(`listen ${pg.escapeIdentifier(channel)}`);
      listening.add(channel);
      tell(channel, undefined);
    }
  }

  function tell(channel: string, payload: string | undefined): void {
    for (const listener of listeners.get(channel) ?? []) listener(payload);
  }

  function forget(): void {
    client = undefined;
    listening = new Set();
  }

  async function disconnect(): Promise<void> {
    const current = client;
    forget();
    await current?.end().catch(() => {});
  }

  function pause(ms: number): Promise<void> {
    if (closed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      interruptPause = () => {
        // Only closing cuts the delay short: a new listener is no reason to reconnect earlier to a server that is down.
        if (!closed) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return {
    on: (channel, listener) => {
      const ofChannel = listeners.get(channel) ?? new Set();
      listeners.set(channel, ofChannel.add(listener));
      if (listening.has(channel)) queueMicrotask(() => ofChannel.has(listener) && listener(undefined));
      else wake();
      return () => {
        ofChannel.delete(listener);
        if (ofChannel.size > 0 || listeners.get(channel) !== ofChannel) return;
        listeners.delete(channel);
        wake();
      };
    },
    get connected() {
      return client !== undefined && listening.size > 0;
    },
    close: async () => {
      closed = true;
      listeners.clear();
      wake();
      await running;
    },
  };
}

/** For connections without notifications: listeners must poll. */
export const noNotifications: Notifications = {
  on: () => () => {},
  connected: false,
  close: async () => {},
};
