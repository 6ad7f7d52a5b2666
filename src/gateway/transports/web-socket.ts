import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ExecutionArgs, type FormattedExecutionResult, GraphQLError } from 'graphql';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { anonymous, type Viewer } from '../../access.ts';
import { type OperationRequest, prepareOperation, withoutHttp, type Yoga } from '../operations/run-operation.ts';
import type { Admission } from '../policies/admission.ts';
import { isUnavailable } from '../policies/authentication.ts';
import type { ConcurrencyLimit } from '../policies/concurrency-limit.ts';
import type { ClientOf } from '../requests/client.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import type { CanaryChoice } from '../rollout/canary.ts';
import { Subscription } from '../subscriptions/subscription.ts';
import type { SubscriptionArgs, Subscriptions } from '../subscriptions/subscriptions.ts';
import { SocketWriter, WebSocketSink } from './web-socket-sink.ts';

export interface WebSocketOptions {
  readonly yoga: Yoga;
  readonly subscriptions: Subscriptions;
  readonly maskError: (error: unknown) => GraphQLError;
  /** Milliseconds that a client has to introduce itself. In a storm of clients that come back, the first of them wait for the last. */
  readonly connectionInitTimeout: number;
  /** Bytes of one message. */
  readonly maxPayload: number;
  /** The document that a request names. */
  readonly documentFor: (request: OperationRequest) => string;
  /** Which canaries an operation goes to. */
  readonly chooseCanaries: CanaryChoice;
  /** Other sites whose pages may connect. */
  readonly origins: readonly string[];
  readonly admission: Admission;
  /** How many may be open at a time, beside streams of the single connection mode. */
  readonly limit: ConcurrencyLimit;
  /** Whom one counts for. */
  readonly clientOf: ClientOf;
  readonly logger: Logger;
}

export interface WebSocketEndpoint {
  /** Takes a request over that asks to become a WebSocket. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Tells all clients that the server is going away (1001), so that they connect again elsewhere. */
  close(): Promise<void>;
}

// A client answers the good-bye within a round trip; one that does not is gone or stuck.
const goodbyePatience = 1000;

/** Operations over WebSocket, by the `graphql-transport-ws` protocol. */
export function createWebSocketEndpoint(options: WebSocketOptions): WebSocketEndpoint {
  const {
    yoga,
    subscriptions,
    maskError,
    connectionInitTimeout,
    maxPayload,
    admission,
    limit,
    clientOf,
    chooseCanaries,
    origins,
    documentFor,
    logger,
  } = options;
  const server = new WebSocketServer({ noServer: true, maxPayload });
  const writers = new WeakMap<WebSocket, SocketWriter>();
  /** What ends the counting of each. */
  const leaves = new WeakMap<WebSocket, () => void>();
  const runs = new WeakMap<object, () => Promise<Result | WebSocketSink>>();
  const run = ({ contextValue }: ExecutionArgs) => {
    const found = runs.get(contextValue as object) as () => Promise<Result | WebSocketSink>; // set for each in onSubscribe
    runs.delete(contextValue as object); // what it holds is needed once
    return found();
  };

  const protocol = useServer(
    {
      connectionInitWaitTimeout: connectionInitTimeout,
      execute: run as never, // gives what the protocol takes; its type asks for a narrower iterable
      subscribe: run as never, // as above
      // 4403 closes the socket of a client whose token does not count; it learns so before it subscribes.
      async onConnect(context) {
        const socket = context.extra.socket as WebSocket; // of the server below
        const transport = transportOf(context);
        try {
          const viewer = await admission.identify(transport);
          if (socket.readyState !== socket.OPEN) return false;
          count(socket, viewer, transport);
          return true;
        } catch (error) {
          if (isLater(error)) tryLater(socket, error);
          else if (!(error instanceof GraphQLError)) maskError(error); // logs it
          return false;
        }
      },
      async onSubscribe(context, id, { query, variables, operationName, extensions }) {
        const transport = { ...transportOf(context), message: {} };
        const refusal = await admission.admit(transport).then(
          () => undefined,
          (error) => withoutHttp(maskError(error)),
        );
        if (refusal) return [refusal];
        const request = { query, variables, operationName, extensions };
        const prepared = await prepareOperation(yoga, maskError, request, transport, documentFor, chooseCanaries);
        if (!('run' in prepared)) return prepared;
        const { schema, document } = prepared.args;
        // The protocol's implementation keeps what it gets as long as a subscription lasts; it needs no more than this.
        const key = {};
        const writer = writers.get(context.extra.socket as WebSocket) as SocketWriter; // set for each in upgrade
        runs.set(key, prepared.isSubscription ? () => open(prepared.args, writer, id) : prepared.run);
        return { schema, document, operationName, contextValue: key } as ExecutionArgs; // without what is not given
      },
      onNext: (_, __, ___, ____, result) => withPlainErrors(result),
    },
    server,
  );

  async function open(args: SubscriptionArgs, writer: SocketWriter, id: string): Promise<Result | WebSocketSink> {
    const opened = await subscriptions.open(args);
    return opened instanceof Subscription ? new WebSocketSink(writer, opened, id) : opened;
  }

  /** From now on it is one of this viewer's; until a client has introduced itself, one of its address. */
  function count(webSocket: WebSocket, viewer: Viewer | 'system', transport: TransportContext): void {
    leaves.get(webSocket)?.();
    leaves.set(webSocket, limit.open(clientOf(viewer, transport)));
  }

  return {
    upgrade(request, socket, head) {
      if (!isExpected(request, origins)) return refuseUpgrade(socket, '403 Forbidden');
      server.handleUpgrade(request, socket, head, (webSocket: WebSocket) => {
        webSocket.once('close', () => leaves.get(webSocket)?.());
        try {
          count(webSocket, anonymous, { socketRequest: request, socketHeaders: request.headers });
        } catch (error) {
          hearErrors(webSocket, logger);
          return tryLater(webSocket, error as GraphQLError); // of the limit
        }
        writers.set(webSocket, new SocketWriter(webSocket, socket));
        server.emit('connection', webSocket, request);
        hearErrors(webSocket, logger);
      });
    },
    async close() {
      const deadline = setTimeout(() => {
        for (const client of server.clients) client.terminate();
      }, goodbyePatience);
      await protocol.dispose();
      clearTimeout(deadline);
    },
  };
}

function isLater(error: unknown): error is GraphQLError {
  return isUnavailable(error) || (error instanceof GraphQLError && error.extensions.code === 'RATE_LIMITED');
}

/** By a status instead of the handshake, a browser would learn nothing: it hides status and body from the page. */
function tryLater(webSocket: WebSocket, { message }: GraphQLError): void {
  webSocket.close(1013, message.slice(0, longestReason));
  setTimeout(() => webSocket.terminate(), goodbyePatience).unref(); // it does not count any more
}

// A close frame has 125 bytes, 2 of them for the code. Our messages are ASCII but for an apostrophe.
const longestReason = 121;

/**
 * What a client sends that is no frame is its own doing: `ws` has closed the socket with the code that fits before it tells of it. The
 * protocol's implementation writes a stack to the console for each, with which anybody could flood the log.
 */
function hearErrors(webSocket: WebSocket, logger: Logger): void {
  webSocket.removeAllListeners('error');
  webSocket.on('error', (error) => logger.debug({ reason: error.message }, 'a WebSocket client sent what is no frame'));
}

interface Connection {
  readonly extra: Extra;
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
}

function transportOf({ extra, connectionParams }: Connection): TransportContext {
  return {
    socketHeaders: extra.request.headers,
    socketRequest: extra.request,
    ...(connectionParams ? { connectionParams } : {}),
  };
}

interface Result {
  readonly data?: Record<string, unknown> | null | undefined;
  readonly errors?: readonly GraphQLError[] | undefined;
  readonly extensions?: Record<string, unknown> | undefined;
}

function withPlainErrors({ data, errors, extensions }: Result): FormattedExecutionResult | undefined {
  if (!errors) return undefined;
  return {
    ...(data === undefined ? {} : { data }),
    errors: errors.map((error) => withoutHttp(error).toJSON()),
    ...(extensions === undefined ? {} : { extensions }),
  };
}

/** Browsers let a page of any site open a WebSocket to any other, cookies included; they say which site it is. */
function isExpected({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  if (headers.origin === undefined || origins.includes(headers.origin)) return true;
  return URL.parse(headers.origin)?.host === headers.host;
}

/** Answers a request that asked to become a WebSocket with a status instead. */
export function refuseUpgrade(socket: Duplex, status: '403 Forbidden' | '404 Not Found'): void {
  socket.on('error', () => socket.destroy()); // nobody else listens, and a client may be gone already
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
