import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type ExecutionArgs, type FormattedExecutionResult, GraphQLError } from 'graphql';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { anonymous, type Viewer } from '../../access.ts';
import { type OperationRequest, prepareOperation, withoutHttp, type Yoga } from '../operations/run-operation.ts';
import { isUnavailable } from '../policies/authentication.ts';
import type { ConcurrencyLimit } from '../policies/concurrency-limit.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import type { ClientOf } from '../requests/client.ts';
import { isOwnOrigin } from '../requests/own-origin.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import type { CanaryChoice } from '../rollout/canary.ts';
import { ClientSubscription } from '../subscriptions/subscription.ts';
import { type SubscriptionArgs, type Subscriptions, stopping } from '../subscriptions/subscriptions.ts';
import { PendingOperations } from './pending-operations.ts';
import { SocketWriter, WebSocketSink } from './web-socket-sink.ts';

export interface WebSocketOptions {
  readonly yoga: Yoga;
  readonly subscriptions: Subscriptions;
  readonly maskError: (error: unknown) => GraphQLError;
  /**
   * How long a client may take to send `connection_init`, in milliseconds. When many clients reconnect at once, the first may wait until
   * the last is connected.
   */
  readonly connectionInitTimeout: number;
  /** Maximum size of one message, in bytes. */
  readonly maxPayload: number;
  /** Returns the document of a request. */
  readonly documentFor: (request: OperationRequest) => string;
  /** Chooses the canaries that serve an operation. */
  readonly chooseCanaries: CanaryChoice;
  /** Origins of other sites whose pages may connect. */
  readonly origins: readonly string[];
  readonly policies: RequestPolicies;
  /** Limits the number of open WebSockets together with single-connection streams. */
  readonly limit: ConcurrencyLimit;
  /** Returns the client that a connection counts for. */
  readonly clientOf: ClientOf;
  readonly logger: Logger;
}

export interface WebSocketEndpoint {
  /** Handles a request to upgrade to a WebSocket. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /**
   * Closes all connections with 1001 (going away), which makes clients reconnect to another process. Connections on which results of queries or
   * mutations are pending close when these are sent, after `timeoutMs` milliseconds at most. A mutation that is left then gets `OUTCOME_UNKNOWN`.
   */
  close(timeoutMs: number): Promise<void>;
}

// In milliseconds. A client acknowledges the close within a round trip; one that does not is gone or stuck.
const closeTimeoutMs = 1000;

/** Serves operations over WebSocket, with the `graphql-transport-ws` protocol. */
export function createWebSocketEndpoint(options: WebSocketOptions): WebSocketEndpoint {
  const {
    yoga,
    subscriptions,
    maskError,
    connectionInitTimeout,
    maxPayload,
    policies,
    limit,
    clientOf,
    chooseCanaries,
    origins,
    documentFor,
    logger,
  } = options;
  const server = new WebSocketServer({ noServer: true, maxPayload });
  const writers = new WeakMap<WebSocket, SocketWriter>();
  const pending = new WeakMap<WebSocket, PendingOperations>();
  const pendingOf = ({ extra }: Connection) => pending.get(extra.socket as WebSocket) as PendingOperations; // set for each in upgrade
  let isClosing = false;
  /** For each socket, the function that releases its place in the limit. */
  const leaves = new WeakMap<WebSocket, () => void>();
  const runs = new WeakMap<object, () => Promise<Result | WebSocketSink>>();
  const run = ({ contextValue }: ExecutionArgs) => {
    const found = runs.get(contextValue as object) as () => Promise<Result | WebSocketSink>; // set for each operation in onSubscribe
    runs.delete(contextValue as object); // each is used once; release what it holds
    return found();
  };

  const protocol = useServer(
    {
      connectionInitWaitTimeout: connectionInitTimeout,
      execute: run as never, // returns what the protocol accepts; its type requires a narrower iterable
      subscribe: run as never, // as above
      // If the token is invalid, the socket is closed with 4403, so the client knows before it subscribes.
      async onConnect(context) {
        const socket = context.extra.socket as WebSocket; // created by the server below
        const transport = transportOf(context);
        try {
          const viewer = await policies.authenticate(transport);
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
        const socket = context.extra.socket as WebSocket; // of the server below
        // It is sent again elsewhere: nothing of it is done here.
        if (isClosing) return closed(socket).then(() => [stopping()]);
        const answers = pendingOf(context);
        answers.begin(id);
        const transport = { ...transportOf(context), message: {} };
        const refusal = await policies.authenticateAndLimit(transport).then(
          () => undefined,
          (error) => withoutHttp(maskError(error)),
        );
        if (refusal) return refused(answers, id, [refusal]);
        const request = { query, variables, operationName, extensions };
        const prepared = await prepareOperation(yoga, maskError, request, transport, documentFor, chooseCanaries);
        if (!('run' in prepared)) return refused(answers, id, prepared);
        if (prepared.isSubscription) answers.end(id);
        const { schema, document } = prepared.args;
        // The protocol implementation keeps this object as long as a subscription lasts, so it gets only what it needs.
        const key = {};
        const writer = writers.get(socket) as SocketWriter; // set for each socket in upgrade
        const answer = () => answers.outcomeOf(id, prepared);
        runs.set(key, prepared.isSubscription ? () => open(prepared.args, writer, id) : answer);
        return { schema, document, operationName, contextValue: key } as ExecutionArgs; // without absent properties
      },
      onNext: (_, __, ___, ____, result) => withPlainErrors(result),
      onComplete: (context, id) => pendingOf(context).end(id),
    },
    server,
  );

  function terminateAll(): void {
    for (const client of server.clients) client.terminate();
  }

  async function open(args: SubscriptionArgs, writer: SocketWriter, id: string): Promise<Result | WebSocketSink> {
    const opened = await subscriptions.open(args);
    return opened instanceof ClientSubscription ? new WebSocketSink(writer, opened, id) : opened;
  }

  /** From now on the socket counts for this viewer. Before `connection_init`, it counts for its address. */
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
          return tryLater(webSocket, error as GraphQLError); // thrown by the limit
        }
        writers.set(webSocket, new SocketWriter(webSocket, socket));
        pending.set(webSocket, new PendingOperations());
        server.emit('connection', webSocket, request);
        hearErrors(webSocket, logger);
      });
    },
    async close(timeoutMs) {
      isClosing = true;
      const clients = [...server.clients];
      const timeout = setTimeout(() => {
        for (const client of clients) pending.get(client)?.respondToAll();
      }, timeoutMs);
      const unread = setTimeout(terminateAll, timeoutMs + closeTimeoutMs);
      await Promise.all(
        clients.map(async (client) => {
          await Promise.race([pending.get(client)?.none(), closed(client)]);
          await setImmediate(); // by then the end of the last operation is written
          client.close(1001, 'Going away');
        }),
      );
      clearTimeout(timeout);
      clearTimeout(unread);
      const deadline = setTimeout(terminateAll, closeTimeoutMs);
      await protocol.dispose();
      clearTimeout(deadline);
    },
  };
}

function closed(webSocket: WebSocket): Promise<void> {
  return new Promise((resolve) => webSocket.once('close', () => resolve()));
}

/** An operation that ends before it runs: its errors are written right after this. */
function refused(answers: PendingOperations, id: string, errors: readonly GraphQLError[]): readonly GraphQLError[] {
  answers.end(id);
  return errors;
}

function isLater(error: unknown): error is GraphQLError {
  return isUnavailable(error) || (error instanceof GraphQLError && error.extensions.code === 'RATE_LIMITED');
}

/** Closes with 1013 and the reason. A failed handshake would tell a browser nothing: it hides status and body from the page. */
function tryLater(webSocket: WebSocket, { message }: GraphQLError): void {
  webSocket.close(1013, message.slice(0, longestReason));
  setTimeout(() => webSocket.terminate(), closeTimeoutMs).unref(); // it no longer counts in the limit
}

// The payload of a close frame has 125 bytes, 2 of them for the code. Our messages are ASCII except for an apostrophe.
const longestReason = 121;

/**
 * Logs invalid frames at debug level only. They are the client's fault, and `ws` has already closed the socket with the right code. The
 * protocol implementation would print a stack to the console for each, and anyone could flood the log.
 */
function hearErrors(webSocket: WebSocket, logger: Logger): void {
  webSocket.removeAllListeners('error');
  webSocket.on('error', (error) => logger.debug({ reason: error.message }, 'a WebSocket client sent an invalid frame'));
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

/** Browsers let a page of any site open a WebSocket to any other site, cookies included. The `origin` header names the site. */
function isExpected({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  return headers.origin === undefined || origins.includes(headers.origin) || isOwnOrigin(headers);
}

/** Refuses a request to upgrade to a WebSocket with an HTTP status. */
export function refuseUpgrade(socket: Duplex, status: '403 Forbidden' | '404 Not Found'): void {
  socket.on('error', () => socket.destroy()); // nothing else listens, and the client may have disconnected
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
