import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GraphQLError } from 'graphql';
import { operationOf, plainRequest, readBody } from '../operations/plain-request.ts';
import { type OperationRequest, prepareOperation, type Yoga } from '../operations/run-operation.ts';
import type { ServedSchemaContext } from '../operations/served-schema.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import type { HttpHandler } from '../requests/http-handler.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import { deprecationHeaders } from '../rollout/pins.ts';
import type { Answer } from '../subscriptions/answer.ts';
import { createAnswer } from '../subscriptions/answer.ts';
import { ClientSubscription, type Sink } from '../subscriptions/subscription.ts';
import type { Subscriptions } from '../subscriptions/subscriptions.ts';
import { eventStreamRequest } from './event-stream-request.ts';

export interface EventStreamsOptions {
  readonly yoga: Yoga;
  readonly subscriptions: Subscriptions;
  readonly policies: RequestPolicies;
  readonly maskError: (error: unknown) => GraphQLError;
  /** Maximum size of a request body, in bytes. */
  readonly maxBodySize: number;
  /** Returns the document of a request; empty if the request has none. */
  readonly documentFor: (request: OperationRequest) => string;
}

export interface EventStreams {
  /** Passes on everything except subscriptions over server-sent events. */
  readonly handler: HttpHandler;
  /** Ends all streams without `complete`; after `complete`, clients would not reconnect. */
  close(): void;
}

// The heartbeat interval in milliseconds. Proxies close idle connections after some ten seconds to a minute.
const heartbeatIntervalMs = 12_000;

/**
 * Subscriptions over server-sent events on plain node:http. For each subscription, yoga holds a Request, a Response, a stream and a timer,
 * which need several times the memory of the connection; and it serializes the same message for each subscriber. The output is the same as
 * yoga's. Requests that yoga would refuse are passed to yoga.
 */
export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { yoga, subscriptions, policies, maskError, maxBodySize, documentFor } = options;
  const streams = new Set<EventStream>();
  let isClosed = false;
  const keepAlive = setInterval(() => {
    for (const stream of streams) stream.sayNothing();
  }, heartbeatIntervalMs);
  keepAlive.unref();

  async function subscribe(req: IncomingMessage, res: ServerResponse, params: OperationRequest, refuse: () => void) {
    const context: TransportContext & Partial<ServedSchemaContext> = { req, request: plainRequest(req) };
    // Yoga refuses it again, with its own message.
    const prepared = await policies.authenticateAndLimit(context).then(
      () => prepareOperation(yoga, maskError, params, context, documentFor),
      () => [],
    );
    if (!('run' in prepared) || !prepared.isSubscription) return refuse();
    const opened = await subscriptions.open(prepared.args);
    // The client has disconnected, or the process has stopped.
    if (res.destroyed || res.writableEnded) return void (opened instanceof ClientSubscription && opened.leave());
    const { served } = prepared.args.contextValue as Partial<ServedSchemaContext>; // set by the schema plugin
    const headers = Object.fromEntries(served ? deprecationHeaders(served.versions) : []);
    if (!(opened instanceof ClientSubscription)) return void sendOnce(res, opened.errors, headers);
    const stream = new EventStream(res, opened);
    streams.add(stream);
    res.once('close', () => {
      streams.delete(stream);
      opened.leave();
    });
    stream.begin(headers);
    if (isClosed) stream.goAway();
  }

  return {
    handler(req, res, next) {
      // With pipelined requests, a response has no socket until the responses before it are sent.
      const request = res.socket ? eventStreamRequest(req, maxBodySize) : undefined;
      if (!request) return next(req, res);
      const begin = (params: OperationRequest, refuse: () => void) =>
        subscribe(req, res, params, refuse).catch((error) => {
          maskError(error); // logs it
          res.destroy();
        });
      if (request.method === 'GET') return void begin(request.operation, () => next(req, res));
      readBody(req, (body) => {
        // Yoga looks there for a body that was already read.
        const refuse = () => void yoga(Object.assign(req, { body }), res);
        const params = parsed(body);
        if (params) void begin(params, refuse);
        else refuse();
      });
    },
    close() {
      isClosed = true;
      clearInterval(keepAlive);
      for (const stream of streams) stream.goAway();
    },
  };
}

function parsed(body: Buffer): OperationRequest | undefined {
  try {
    return operationOf(JSON.parse(body.toString()));
  } catch {
    return undefined; // not JSON: yoga reports it
  }
}

const streamHeaders = {
  'content-type': 'text/event-stream',
  connection: 'keep-alive',
  'cache-control': 'no-cache',
  'content-encoding': 'none',
};
const comment = chunk(Buffer.from(':\n\n'));
const complete = 'event: complete\ndata:\n\n';

/** The stream of one client. It writes bytes to the socket directly: an event is serialized once for all subscribers. */
class EventStream implements Sink {
  readonly #res: ServerResponse;
  readonly #subscription: ClientSubscription;
  #isWaiting = false;

  constructor(res: ServerResponse, subscription: ClientSubscription) {
    this.#res = res;
    this.#subscription = subscription;
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.#res.writeHead(200, { ...streamHeaders, 'transfer-encoding': 'chunked', ...headers });
    this.#res.flushHeaders();
    // Some browsers report a response to the page only after its first byte.
    this.#socket?.write(comment);
    this.#subscription.serve(this);
  }

  /** Null if the connection is closed. */
  get #socket(): Socket | null {
    return this.#res.socket;
  }

  get isReady(): boolean {
    const socket = this.#socket;
    if (!socket || this.#isWaiting) return false;
    if (!socket.writableNeedDrain) return true;
    this.#isWaiting = true;
    socket.once('drain', () => {
      this.#isWaiting = false;
      this.#subscription.wake();
    });
    return false;
  }

  send(answer: Answer): void {
    this.#socket?.write(eventOf(answer));
  }

  complete(): void {
    this.#res.end(complete);
  }

  /** The process is stopping: the client subscribes again at another process. */
  goAway(): void {
    this.#subscription.leave();
    this.#res.end();
  }

  sayNothing(): void {
    if (!this.#socket?.writableNeedDrain) this.#socket?.write(comment);
  }
}

const events = new WeakMap<Answer, Buffer>();

function eventOf(answer: Answer): Buffer {
  const known = events.get(answer);
  if (known) return known;
  const head = answer.eventId === undefined ? '' : `id: ${answer.eventId}\n`;
  const event = chunk(Buffer.concat([Buffer.from(`event: next\n${head}data: `), answer.json, Buffer.from('\n\n')]));
  events.set(answer, event);
  return event;
}

/** Frames bytes for `transfer-encoding: chunked`. */
function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** Sends a single result with errors, and completes. */
function sendOnce(
  res: ServerResponse,
  errors: readonly GraphQLError[],
  headers: Readonly<Record<string, string>>,
): void {
  const http = errors.map(({ extensions }) => (extensions.http ?? {}) as HttpExtensions); // set by Refold and by yoga
  const statuses = http.flatMap(({ status }) => status ?? []);
  const unexpected = errors.some(({ extensions }) => extensions.unexpected === true);
  const status = statuses.length > 0 ? Math.max(...statuses) : unexpected ? 500 : 200;
  const { json } = createAnswer({ errors });
  res.writeHead(status, { ...streamHeaders, ...Object.assign({}, ...http.map(({ headers: own }) => own)), ...headers });
  res.end(`:\n\nevent: next\ndata: ${json.toString()}\n\n${complete}`);
}

interface HttpExtensions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}
