import type { ExecutionResult } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { CliProcess } from '../support/cli.ts';

/** A deployed process of the application. */
export interface Deployed {
  readonly name: string;
  readonly cli: CliProcess;
  readonly url: string;
  /** Once SIGTERM is sent, its connections may end. */
  stopping: boolean;
}

/** One query and its response. `sent` and `received` are points of one counter. */
export interface Answered {
  readonly by: Deployed;
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** The position that the response must include. */
  readonly after: bigint | undefined;
  readonly sent: number;
  readonly received: number;
  readonly status: number;
  readonly body: ExecutionResult<Record<string, unknown>>;
}

/** One subscription over its whole life, across processes and versions. */
export interface Watched {
  readonly name: string;
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly over: 'server-sent events' | 'WebSocket';
  readonly updates: Update[];
  /** The errors of its last message, if it had any. */
  readonly errors: NonNullable<ExecutionResult['errors']>[number][];
}

export interface Update {
  readonly by: Deployed;
  readonly data: Record<string, unknown>;
}

/**
 * Clients that keep querying and subscribing, and record all responses. A connection may end if its process is stopping, or when
 * the test is over; then clients continue at the current process. Any other end is a failure.
 */
export class Traffic {
  readonly answers: Answered[] = [];
  readonly failures: string[] = [];
  /** The process to which clients connect now. */
  front: Deployed;
  #clock = 0;
  #over = false;
  readonly #loops: Promise<void>[] = [];
  readonly #clients = new Map<string, { dispose(): unknown }>();

  constructor(front: Deployed) {
    this.front = front;
  }

  async ask(
    by: Deployed,
    query: string,
    variables: Readonly<Record<string, unknown>> = {},
    after?: bigint,
  ): Promise<Answered> {
    const sent = ++this.#clock;
    const response = await fetch(`${by.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(after === undefined ? {} : { 'refold-after': String(after) }),
      },
      body: JSON.stringify({ query, variables }),
    });
    const body = await response.json();
    const answer = { by, query, variables, after, sent, received: ++this.#clock, status: response.status, body };
    this.answers.push(answer);
    return answer;
  }

  /** One client that repeats this, each time at the current process. */
  keepDoing(name: string, round: (by: Deployed) => Promise<unknown>): void {
    const loop = async () => {
      while (!this.#over) {
        const by = this.front;
        try {
          await round(by);
        } catch (error) {
          if (by.stopping) continue;
          this.failures.push(`${name} failed at the ${by.name} process: ${told(error)}`);
          return;
        }
      }
    };
    this.#loops.push(loop());
  }

  /** A subscription that is reopened if its process stops. */
  watch(by: Deployed, subscription: Omit<Watched, 'updates' | 'errors'>): Watched {
    const watched: Watched = { ...subscription, updates: [], errors: [] };
    const { name, over, query, variables } = watched;
    const loop = async () => {
      for (let at = by; !this.#over; at = this.front) {
        const ending = await this.#follow(watched, at, { query, variables: { ...variables } });
        if (this.#over || watched.errors.length > 0) return;
        if (!at.stopping) {
          this.failures.push(`${name} over ${over} was dropped by the ${at.name} process: ${ending}`);
          return;
        }
      }
    };
    this.#loops.push(loop());
    return watched;
  }

  async #follow(watched: Watched, by: Deployed, request: { query: string; variables: Record<string, unknown> }) {
    try {
      const results =
        watched.over === 'WebSocket' ? this.#socketOf(by).iterate(request) : this.#eventsOf(by).iterate(request);
      for await (const { data, errors } of results as AsyncIterable<ExecutionResult<Record<string, unknown>>>) {
        if (errors) watched.errors.push(...errors);
        else if (data) watched.updates.push({ by, data });
      }
      return 'it got a complete message';
    } catch (error) {
      return told(error);
    }
  }

  /** Five subscriptions share a socket. */
  #socketOf(by: Deployed) {
    const number = Math.floor(this.#sockets++ / 5);
    return this.#client(`${by.name} socket ${number}`, () =>
      createSocketClient({
        url: `${by.url.replace('http', 'ws')}/graphql`,
        webSocketImpl: WebSocket,
        retryAttempts: 0,
      }),
    );
  }
  #sockets = 0;

  #eventsOf(by: Deployed) {
    return this.#client(`${by.name} events`, () => createSseClient({ url: `${by.url}/graphql`, retryAttempts: 0 }));
  }

  #client<C extends { dispose(): unknown }>(name: string, create: () => C): C {
    const known = this.#clients.get(name) as C | undefined; // of one kind under each name
    if (known) return known;
    const client = create();
    this.#clients.set(name, client);
    return client;
  }

  async stop(): Promise<void> {
    this.#over = true;
    for (const client of this.#clients.values()) await client.dispose();
    await Promise.all(this.#loops);
  }
}

function told(error: unknown): string {
  if (error instanceof Error)
    return `${error.message}${error.cause instanceof Error ? ` (${error.cause.message})` : ''}`;
  if (typeof error === 'object' && error !== null && 'code' in error) return `closed with ${error.code}`;
  return JSON.stringify(error);
}
