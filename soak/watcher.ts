import { setTimeout as pause } from 'node:timers/promises';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type Backend, type Balancer, codeOf } from './balancer.ts';
import type { ClientRecord } from './client-record.ts';

export type Transport = 'server-sent events' | 'WebSocket';

/** A subscription, and what a client keeps from its messages. */
export interface Watch {
  readonly name: string;
  /** May resume from `$since`, if it has a cursor. */
  readonly query: string;
  readonly variables: Readonly<{ [name: string]: unknown }>;
  /** Processes the next message. */
  apply(data: Readonly<{ [name: string]: unknown }>): void;
  /** Where it resumes after a disconnect. */
  readonly cursor?: string | null;
}

export interface Watcher {
  readonly watch: Watch;
  readonly over: Transport;
  readonly messages: number;
  stop(): Promise<void>;
}

export interface WatchOptions {
  readonly balancer: Balancer;
  readonly record: ClientRecord;
  readonly over: Transport;
  /** Disconnects this long after the first message, in milliseconds; if undefined, it stays. */
  readonly leavesAfter?: number;
}

/** How soon an ended subscription is reopened. */
const retryMs = 200;

/** A client with one subscription. It reopens it whenever its process stops; the subscription must not end for another reason. */
export function startWatcher(
  watch: Watch,
  { balancer, record, over, leavesAfter }: WatchOptions,
): Watcher & { readonly ended: Promise<void> } {
  let isOver = false;
  let leave = () => {};
  let messages = 0;

  async function follow(backend: Backend): Promise<string> {
    const client = clientOf(backend, over);
    leave = () => void client.dispose();
    if (isOver) leave();
    const variables = watch.cursor === undefined ? watch.variables : { ...watch.variables, since: watch.cursor };
    try {
      for await (const { data, errors } of client.iterate({ query: watch.query, variables: { ...variables } })) {
        if (errors) return String(errors[0]?.extensions?.code ?? errors[0]?.message);
        messages++;
        watch.apply(data as Readonly<{ [name: string]: unknown }>); // no errors
        if (messages === 1 && leavesAfter !== undefined) setTimeout(stop, leavesAfter);
      }
      return 'COMPLETE';
    } catch (error) {
      return codeOf(error instanceof Error ? error : closeOf(error));
    } finally {
      client.dispose();
    }
  }

  function stop(): void {
    isOver = true;
    leave();
  }

  async function loop(): Promise<void> {
    while (!isOver) {
      const backend = await balancer.pick();
      if (isOver) return;
      const ending = await follow(backend);
      if (isOver) return;
      if (ending.includes('ECONNREFUSED')) balancer.refused(backend);
      else if (backend.process.stopping && ending !== 'COMPLETE')
        record.happened(`a subscription over ${over} was reopened`);
      else record.failed(`subscription over ${over}`, ending, `${watch.name} at ${backend.process.name}`);
      if (leavesAfter !== undefined) return;
      await pause(retryMs);
    }
  }

  const ended = loop();
  return {
    watch,
    over,
    get messages() {
      return messages;
    },
    ended,
    async stop() {
      stop();
      await ended;
    },
  };
}

interface Client {
  iterate(request: { query: string; variables: { [name: string]: unknown } }): AsyncIterable<Result>;
  dispose(): unknown;
}

interface Result {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: unknown } }[];
}

function clientOf({ url }: Backend, over: Transport): Client {
  if (over === 'WebSocket')
    return createSocketClient({
      url: `${url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: 'watcher' },
      retryAttempts: 0,
    }) as Client; // its results have more
  const headers = { authorization: 'watcher' };
  return createSseClient({ url: `${url}/graphql`, headers, retryAttempts: 0 }) as Client; // as above
}

function closeOf(event: unknown): Error {
  if (typeof event === 'object' && event !== null && 'code' in event)
    return new Error(`closed with ${String(event.code)}`);
  return new Error(JSON.stringify(event));
}
