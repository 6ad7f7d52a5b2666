import { setTimeout as pause } from 'node:timers/promises';
import { type EventStreamMessage, readEventStream } from './event-stream.ts';
import { rowText } from './row-text.ts';
import { type Answer, positionOf } from './told.ts';

/** The change feed of a projection, with columns that all of its versions have in common. */
export interface Feed {
  readonly projection: string;
  readonly key: string;
  readonly columns: readonly string[];
}

export const feeds: readonly Feed[] = [
  { projection: 'balance', key: 'accountId', columns: ['amount', 'movements', 'chain'] },
  { projection: 'balance', key: 'accountId', columns: ['amount', 'movements', 'chain'] },
  { projection: 'sales', key: 'what', columns: ['orders', 'units', 'chain'] },
  { projection: 'standing', key: 'accountId', columns: ['amount', 'chain'] },
  { projection: 'standing', key: 'accountId', columns: ['amount', 'chain'] },
  { projection: 'credits', key: 'row', columns: ['credits', 'amount', 'chain'] },
];

/** A client that keeps a copy of a read table by its feed, and resumes by cursor after each disconnect. */
export interface FeedClient {
  readonly name: string;
  readonly feed: Feed;
  /** The columns by key, as texts. */
  readonly copy: ReadonlyMap<string, string>;
  /** Messages that no client may get, with the time. */
  readonly problems: readonly { readonly at: number; readonly text: string }[];
  /** Times at which it had to start over, with the reason in the message. */
  readonly resets: readonly { readonly at: number; readonly reason: string }[];
  readonly connections: number;
  /** The positions of changes that it has received, and that its cursor has not reached. */
  readonly ahead: ReadonlySet<bigint>;
  /** Drops its cursor and subscribes again. */
  beginAnew(): void;
  readonly ended: Promise<void>;
}

/** A message of the feed, as selected. */
interface Message {
  readonly position: string;
  readonly cursor: string | null;
  readonly reset: boolean;
  readonly lagged: string | null;
  readonly changes: readonly {
    readonly operation: 'UPSERT' | 'DELETE';
    readonly position: string;
    readonly key: Readonly<Record<string, unknown>>;
    readonly row: Readonly<Record<string, unknown>> | null;
  }[];
}

/** Subscribes at random gateways until the signal aborts; now and then it disconnects by itself. */
export function startFeed(
  feed: Feed,
  gateways: readonly string[],
  random: () => number,
  hear: (answer: Answer) => void,
  signal: AbortSignal,
): FeedClient {
  const name = `feed of ${feed.projection}`;
  const copy = new Map<string, string>();
  const problems: { at: number; text: string }[] = [];
  const resets: { at: number; reason: string }[] = [];
  const ahead = new Set<bigint>();
  const query = `subscription ($since: String) {
    ${feed.projection}Changes(since: $since) {
      position cursor reset lagged
      changes { operation position key { ${feed.key} } row { ${feed.columns.join(' ')} } }
    }
  }`;
  let cursor: string | undefined;
  let position = -1n;
  let connections = 0;
  let leaving = new AbortController();

  function apply(message: Message): void {
    const at = Date.now();
    if (message.reset) {
      resets.push({ at, reason: message.lagged ?? 'FIRST' });
      if (cursor !== undefined && message.lagged === null)
        problems.push({ at, text: `was reset without a reason, after ${cursor}` });
      copy.clear();
      ahead.clear();
      position = -1n;
      // The messages that follow start from an empty copy: no part of them is a point to resume from.
      cursor = undefined;
    }
    const next = positionOf(message.position);
    if (next < position) problems.push({ at, text: `went back from ${position} to ${next} without a reset` });
    position = next;
    for (const { operation, position: changedAt, key, row } of message.changes) {
      const keyText = String(key[feed.key]);
      ahead.add(BigInt(changedAt));
      if (operation === 'DELETE') copy.delete(keyText);
      else copy.set(keyText, rowText(feed.columns, row));
    }
    if (message.cursor === null) return;
    cursor = message.cursor;
    for (const one of ahead) if (one <= positionOf(cursor)) ahead.delete(one);
  }

  function take(event: EventStreamMessage, askedAt: number): void {
    if (event.name !== 'next') return;
    const { data, errors = [] }: Payload = JSON.parse(event.data);
    const message = data?.[`${feed.projection}Changes`];
    if (message) apply(message);
    const codes = errors.map((error) => error.extensions?.code ?? 'NO CODE');
    if (codes.length === 0) return;
    if (codes.includes('HISTORY_CHANGED')) cursor = undefined;
    const response = { data: null, codes, message: errors[0]?.message, position: undefined, held: 0 };
    hear({ client: name, asked: { kind: 'feed' }, demanded: undefined, askedAt, toldAt: Date.now(), response });
  }

  async function subscribe(url: string): Promise<void> {
    const askedAt = Date.now();
    // Connects and disconnects: mostly for seconds, sometimes for one message.
    leaving = new AbortController();
    const leave = AbortSignal.any([
      signal,
      leaving.signal,
      AbortSignal.timeout(200 + Math.round(random() ** 3 * 20_000)),
    ]);
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      // A client can resume only from a cursor, not from a part of a snapshot.
      body: JSON.stringify({ query, variables: { since: cursor ?? null } }),
      signal: leave,
    });
    connections++;
    if (cursor === undefined) copy.clear();
    for await (const event of readEventStream(response)) take(event, askedAt);
  }

  async function live(): Promise<void> {
    while (!signal.aborted) {
      const url = gateways[Math.floor(random() * gateways.length)] as string; // there is one at least
      // The client reconnects, however the subscription ended.
      await subscribe(url).catch(() => {});
      if (!signal.aborted) await pause(20 + random() * 200);
    }
  }

  return {
    name,
    feed,
    copy,
    ahead,
    problems,
    resets,
    get connections() {
      return connections;
    },
    beginAnew() {
      cursor = undefined;
      leaving.abort();
    },
    ended: live(),
  };
}

interface Payload {
  readonly data?: Readonly<Record<string, Message | undefined>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}
