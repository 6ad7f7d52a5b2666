import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClientRecord } from './client-record.ts';
import type { Deployed } from './processes.ts';

/** What a balancer sees of a process. */
export type Balanced = Pick<Deployed, 'name' | 'url' | 'stopping'>;

/** A gateway with its connections, as the balancer sees it. */
export interface Backend {
  readonly process: Balanced;
  readonly url: string;
}

export interface Balancer {
  add(process: Balanced): void;
  remove(process: Balanced): void;
  /** The next gateway that reported ready. Waits while there is none. */
  pick(): Promise<Backend>;
  /** Reports a refused connection: the gateway gets no requests until it reports ready again. */
  refused(backend: Backend): void;
  /** Sends a request to a ready gateway. If the connection is refused, sends it to the next one; in all other cases it is sent only once. */
  post(path: string, headers: Readonly<{ [name: string]: string }>, body: string): Promise<Response>;
  readonly backends: readonly Backend[];
  close(): void;
}

export interface Response {
  readonly backend: Backend;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request that was sent, and got no response. */
export class Unanswered extends Error {
  readonly code: string;
  readonly backend: Backend;

  constructor(code: string, backend: Backend, cause: unknown) {
    super(`${code} at ${backend.process.name}${backend.process.stopping ? ', which was stopping' : ''}`, { cause });
    this.code = code;
    this.backend = backend;
  }
}

/** How often each gateway is asked whether it is ready: often, for a balancer. */
const usualPollMs = 500;

/** Idle connections are closed well before the gateway closes them. Otherwise a request could arrive at that moment and be reset. */
const idleMs = 20_000;

/** Stands before the gateways: keeps connections alive, polls `/health/ready`, and never repeats a request that may have been executed. */
export function createBalancer(record: ClientRecord, pollMs: number = usualPollMs): Balancer {
  interface Known extends Backend {
    readonly agent: Agent;
    isReady: boolean;
  }
  const known: Known[] = [];
  let turn = 0;
  const polling = setInterval(() => {
    for (const one of known) void poll(one);
  }, pollMs);

  async function poll(one: Known): Promise<void> {
    try {
      const { status } = await send(one, new Agent(), { path: '/health/ready', method: 'GET' });
      one.isReady = status === 200;
    } catch {
      one.isReady = false;
    }
  }

  async function pick(): Promise<Known> {
    for (;;) {
      const ready = known.filter(({ isReady }) => isReady);
      const next = ready[turn++ % ready.length];
      if (next) return next;
      await pause(20);
    }
  }

  return {
    add(process) {
      const one = { process, url: process.url, agent: new Agent({ keepAlive: true, timeout: idleMs }), isReady: false };
      known.push(one);
      void poll(one);
    },
    remove(process) {
      const index = known.findIndex((one) => one.process === process);
      for (const one of index < 0 ? [] : known.splice(index, 1)) one.agent.destroy();
    },
    pick,
    refused(backend) {
      record.happened('a connection was refused');
      const one = known.find(({ process }) => process === backend.process);
      if (one) one.isReady = false;
    },
    async post(path, headers, body) {
      for (;;) {
        const backend = await pick();
        try {
          const options = {
            path,
            method: 'POST' as const,
            headers: { 'content-type': 'application/json', ...headers },
          };
          return { backend, ...(await send(backend, backend.agent, options, body)) };
        } catch (error) {
          const code = codeOf(error);
          if (code !== 'ECONNREFUSED') throw new Unanswered(code, backend, error);
          this.refused(backend);
        }
      }
    },
    get backends() {
      return known;
    },
    close() {
      clearInterval(polling);
      for (const { agent } of known) agent.destroy();
    },
  };
}

interface SendOptions {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<{ [name: string]: string }>;
}

function send({ url }: Backend, agent: Agent, options: SendOptions, body = ''): Promise<Omit<Response, 'backend'>> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(options.path, url), { agent, method: options.method, headers: options.headers ?? {} });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.end(body);
  });
}

export function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    if (at instanceof AggregateError && at.errors.length > 0) return codeOf(at.errors[0]);
  }
  return error instanceof Error ? error.message : String(error);
}
