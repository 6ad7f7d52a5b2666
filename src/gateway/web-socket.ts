import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExecutionArgs, FormattedExecutionResult, GraphQLError } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { type OperationResult, prepareOperation, withoutHttp, type Yoga } from './run-operation.ts';

export interface WebSocketOptions {
  readonly yoga: Yoga;
  readonly maskError: (error: unknown) => GraphQLError;
  /** Bytes of one message. */
  readonly maxPayload: number;
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
export function createWebSocketEndpoint({ yoga, maskError, maxPayload }: WebSocketOptions): WebSocketEndpoint {
  const server = new WebSocketServer({ noServer: true, maxPayload });
  const runs = new WeakMap<object, () => Promise<OperationResult>>();
  const run = ({ contextValue }: ExecutionArgs) =>
    (runs.get(contextValue as object) as () => Promise<OperationResult>)(); // set for each in onSubscribe
  const protocol = useServer(
    {
      execute: run as never, // gives what the protocol takes; its type asks for a narrower iterable
      subscribe: run as never, // as above
      async onSubscribe({ extra }, _, { query, variables, operationName }) {
        const transport = { socketHeaders: extra.request.headers };
        const prepared = await prepareOperation(yoga, maskError, { query, variables, operationName }, transport);
        if (!('run' in prepared)) return prepared;
        runs.set(prepared.args.contextValue, prepared.run);
        return prepared.args as ExecutionArgs; // of the envelope, typed loosely
      },
      onNext: (_, __, ___, ____, result) => withPlainErrors(result),
    },
    server,
  );

  return {
    upgrade(request, socket, head) {
      if (!isSameSite(request)) return refuseUpgrade(socket, '403 Forbidden');
      server.handleUpgrade(request, socket, head, (webSocket: WebSocket) =>
        server.emit('connection', webSocket, request),
      );
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
function isSameSite({ headers }: IncomingMessage): boolean {
  if (headers.origin === undefined) return true;
  return URL.parse(headers.origin)?.host === headers.host;
}

/** Answers a request that asked to become a WebSocket with a status instead. */
export function refuseUpgrade(socket: Duplex, status: '403 Forbidden' | '404 Not Found'): void {
  socket.on('error', () => socket.destroy()); // nobody else listens, and a client may be gone already
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
