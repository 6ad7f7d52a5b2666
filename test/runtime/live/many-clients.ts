import { request } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket } from 'ws';

/** One subscription over its own connection, applied as a client does it: no library buffers anything. */
export interface Client {
  /** The `data` of each message received, newest last. */
  readonly messages: readonly Record<string, unknown>[];
  /** What went wrong: errors in messages, or an end that nobody requested. */
  readonly problems: readonly string[];
  /** Stops reading: what the server sends fills the buffers in between. */
  pause(): void;
  resume(): void;
  /** Disconnects without a closing handshake, as a broken network does. */
  drop(): void;
}

export interface Connecting {
  /** The endpoint over HTTP. */
  readonly endpoint: string;
  readonly query: string;
  /** Keeps only the last message. @default false */
  readonly lastOnly?: boolean;
}

export const transports = { 'server-sent events': subscribeByEvents, WebSocket: subscribeByWebSocket } as const;

class Received implements Pick<Client, 'messages' | 'problems'> {
  readonly messages: Record<string, unknown>[] = [];
  readonly problems: string[] = [];
  isDropped = false;
  readonly #lastOnly: boolean;

  constructor(lastOnly = false) {
    this.#lastOnly = lastOnly;
  }

  take({ data, errors }: { data?: Record<string, unknown> | null; errors?: unknown }): void {
    if (errors !== undefined || !data) this.problems.push(JSON.stringify(errors));
    else if (this.#lastOnly) this.messages.splice(0, 1, data);
    else this.messages.push(data);
  }

  ended(how: string): void {
    if (!this.isDropped) this.problems.push(how);
  }
}

function subscribeByEvents({ endpoint, query, lastOnly }: Connecting): Client {
  const received = new Received(lastOnly);
  let socket: Socket | undefined;
  const asking = request(endpoint, {
    method: 'POST',
    agent: false,
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
  });
  asking.on('response', (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const data = /^event: next\n(?:id: .*\n)?data: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) received.take(JSON.parse(data));
        else if (!event.startsWith(':')) received.ended(event);
      }
    });
    response.on('error', (error) => received.ended(error.message));
    response.on('end', () => received.ended('the stream ended'));
  });
  asking.on('socket', (connected) => {
    socket = connected;
  });
  asking.on('error', (error) => received.ended(error.message));
  asking.end(JSON.stringify({ query }));
  return clientOf(
    received,
    () => socket,
    () => void asking.destroy(),
  );
}

function subscribeByWebSocket({ endpoint, query, lastOnly }: Connecting): Client {
  const received = new Received(lastOnly);
  let socket: Socket | undefined;
  const client = new WebSocket(endpoint.replace('http', 'ws'), 'graphql-transport-ws');
  client.on('upgrade', (response) => {
    socket = response.socket;
  });
  client.on('open', () => client.send('{"type":"connection_init"}'));
  client.on('message', (bytes) => {
    const { type, payload } = JSON.parse(String(bytes));
    if (type === 'connection_ack')
      client.send(JSON.stringify({ id: crypto.randomUUID(), type: 'subscribe', payload: { query } }));
    else if (type === 'next') received.take(payload);
    else received.ended(String(bytes));
  });
  client.on('close', (code) => received.ended(`closed with ${code}`));
  client.on('error', (error) => received.ended(error.message));
  return clientOf(
    received,
    () => socket,
    () => client.terminate(),
  );
}

function clientOf(received: Received, socket: () => Socket | undefined, drop: () => void): Client {
  return {
    messages: received.messages,
    problems: received.problems,
    pause: () => void socket()?.pause(),
    resume: () => void socket()?.resume(),
    drop() {
      received.isDropped = true;
      drop();
    },
  };
}
