import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GraphQLError } from 'graphql';
import { operationOf, plainRequest, readBody } from '../operations/plain-request.ts';
import { type OperationRequest, prepareOperation, type Yoga } from '../operations/run-operation.ts';
import type { ServedSchemaContext } from '../operations/served-schema.ts';
import type { Admission } from '../policies/admission.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import { deprecationHeaders } from '../rollout/pins.ts';
import type { Answer } from '../subscriptions/answer.ts';
import { createAnswer } from '../subscriptions/answer.ts';
import { type Sink, Subscription } from '../subscriptions/subscription.ts';
import type { Subscriptions } from '../subscriptions/subscriptions.ts';
import { eventStreamRequest } from './event-stream-request.ts';

export interface EventStreamsOptions {
  readonly yoga: Yoga;
  readonly subscriptions: Subscriptions;
  readonly admission: Admission;
  readonly maskError: (error: unknown) => GraphQLError;
  /** Bytes. */
  readonly maxBodySize: number;
  /** The document that a request names or brings; empty where it does neither. */
  readonly documentFor: (request: OperationRequest) => string;
  /** Answers whatever is no subscription over server-sent events. */
  readonly others: RequestListener;
}

export interface EventStreams {
  readonly listener: RequestListener;
  /** Ends all streams without a word: told that they are complete, clients would not come back. */
  close(): void;
}

// Proxies close connections on which nothing is said for some ten seconds or a minute.
const silence = 12_000;

/**
 * Subscriptions over server-sent events, from node:http: yoga has a Request, a Response, a stream and a timer for each, which need several
 * times the memory of the connection, and makes a text for each of what all are told. In the same words; what yoga would refuse, it refuses.
 */
export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { yoga, subscriptions, admission, maskError, maxBodySize, documentFor, others } = options;
  const streams = new Set<EventStream>();
  let isClosed = false;
  const keepAlive = setInterval(() => {
    for (const stream of streams) stream.sayNothing();
  }, silence);
  keepAlive.unref();

  async function subscribe(req: IncomingMessage, res: ServerResponse, params: OperationRequest, refuse: () => void) {
    const context: TransportContext & Partial<ServedSchemaContext> = { req, request: plainRequest(req) };
    // Refused again by yoga, which has the words.
    const prepared = await admission.admit(context).then(
      () => prepareOperation(yoga, maskError, params, context, documentFor),
      () => [],
    );
    if (!('run' in prepared) || !prepared.isSubscription) return refuse();
    const opened = await subscriptions.open(prepared.args);
    // The client is gone, or the process.
    if (res.destroyed || res.writableEnded) return void (opened instanceof Subscription && opened.leave());
    const { served } = prepared.args.contextValue as Partial<ServedSchemaContext>; // left there by the schema's plugin
    const headers = Object.fromEntries(served ? deprecationHeaders(served.versions) : []);
    if (!(opened instanceof Subscription)) return void sendOnce(res, opened.errors, headers);
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
    listener(req, res) {
      // A response without a socket waits for those to requests that were sent ahead of their answers.
      const request = res.socket ? eventStreamRequest(req, maxBodySize) : undefined;
      if (!request) return others(req, res);
      const begin = (params: OperationRequest, refuse: () => void) =>
        subscribe(req, res, params, refuse).catch((error) => {
          maskError(error); // logs it
          res.destroy();
        });
      if (request.method === 'GET') return void begin(request.operation, () => others(req, res));
      readBody(req, (body) => {
        // Yoga looks there for a body that was read already.
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
    return undefined; // no JSON: yoga tells it
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

/** The stream of one client. Its bytes go to the socket as they are: they were made once, for all who get them. */
class EventStream implements Sink {
  readonly #res: ServerResponse;
  readonly #subscription: Subscription;
  #isWaiting = false;

  constructor(res: ServerResponse, subscription: Subscription) {
    this.#res = res;
    this.#subscription = subscription;
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.#res.writeHead(200, { ...streamHeaders, 'transfer-encoding': 'chunked', ...headers });
    this.#res.flushHeaders();
    // Some browsers tell nobody of a response before something has come.
    this.#socket?.write(comment);
    this.#subscription.serve(this);
  }

  /** Null when the connection is closed. */
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

  /** The process stops: its client opens the subscription again elsewhere. */
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

/** As `transfer-encoding: chunked` frames it. */
function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** One answer, of errors, and the end. */
function sendOnce(
  res: ServerResponse,
  errors: readonly GraphQLError[],
  headers: Readonly<Record<string, string>>,
): void {
  const http = errors.map(({ extensions }) => (extensions.http ?? {}) as HttpExtensions); // what ours put there, and yoga
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
