import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Viewer } from '../../access.ts';
import { operationOf, plainRequest } from '../operations/plain-request.ts';
import type { PreparedOperation } from '../operations/run-operation.ts';
import { prepareOperation } from '../operations/run-operation.ts';
import { type ServedSchemaContext, versionHeaders } from '../operations/served-schema.ts';
import type { ConcurrencyLimit } from '../policies/concurrency-limit.ts';
import type { ClientOf } from '../requests/client.ts';
import type { HttpHandler } from '../requests/http-handler.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import { stoppedBeforeAnswer } from '../requests/unknown-outcome.ts';
import { type Answer, createAnswer } from '../subscriptions/answer.ts';
import { ClientSubscription } from '../subscriptions/subscription.ts';
import { stopping } from '../subscriptions/subscriptions.ts';
import type { EventStreamsOptions } from './event-stream.ts';
import { OperationStream, type StreamedOperation } from './operation-stream.ts';
import { bodyOf, checkSite, isStreamOpening, operationIdIn, refusal, refuse } from './single-connection-request.ts';

export interface SingleConnectionsOptions extends EventStreamsOptions {
  /** Limits the number of streams, reserved or open, together with WebSockets. */
  readonly limit: ConcurrencyLimit;
  /** Returns the client that a stream counts for. */
  readonly clientOf: ClientOf;
  /** How long a reserved stream may stay unopened, in milliseconds. */
  readonly reservationTimeout: number;
  /** Origins of other sites whose pages may use it. */
  readonly origins: readonly string[];
}

export interface SingleConnections {
  /** Passes on requests of other paths. */
  readonly handler: HttpHandler;
  /**
   * Ends all streams without completing their subscriptions, so that clients reconnect to another process. Streams on which results of queries
   * or mutations are pending end when these are written, after `timeoutMs` milliseconds at most. A mutation that is left then gets `OUTCOME_UNKNOWN`.
   */
  close(timeoutMs: number): Promise<void>;
}

interface ReservedStream {
  readonly stream: OperationStream;
  /** Drops the stream if it is not opened in time. */
  readonly expiry: NodeJS.Timeout;
  /** Releases its place in the limit when it ends. */
  leave(): void;
}

type Context = TransportContext & Partial<ServedSchemaContext>;

const path = '/graphql/stream';
// The heartbeat interval in milliseconds, the same as for streams of a single operation.
const heartbeatIntervalMs = 12_000;

/**
 * The single connection mode of the GraphQL over SSE protocol, at `/graphql/stream`. A client reserves a stream (PUT) and opens it (GET).
 * It sends operations in separate requests (POST; DELETE ends them), and gets their results over the stream. Each request is authenticated;
 * only the viewer who reserved a stream can use it.
 */
export function createSingleConnections(options: SingleConnectionsOptions): SingleConnections {
  const { yoga, subscriptions, policies, maskError, maxBodySize, documentFor, limit, clientOf, origins } = options;
  const streams = new Map<string, ReservedStream>();
  let isClosed = false;
  const keepAlive = setInterval(() => {
    for (const { stream } of streams.values()) stream.sayNothing();
  }, heartbeatIntervalMs);
  keepAlive.unref();

  function drop(token: string): void {
    const reserved = streams.get(token);
    if (!reserved) return;
    streams.delete(token);
    clearTimeout(reserved.expiry);
    reserved.leave();
    reserved.stream.end();
  }

  async function reserve(context: Context, res: ServerResponse): Promise<void> {
    const viewer = await policies.authenticateAndLimit(context);
    if (isClosed) throw stopping();
    const leave = limit.open(clientOf(viewer, context));
    const token = randomUUID();
    const expiry = setTimeout(drop, options.reservationTimeout, token).unref();
    streams.set(token, { stream: new OperationStream(ownerOf(viewer)), expiry, leave });
    res.writeHead(201, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).end(token);
  }

  /** A missing stream and a stream of another viewer get the same error. */
  function find(token: string, viewer: Viewer | 'system'): ReservedStream {
    const reserved = streams.get(token);
    if (reserved?.stream.owner !== ownerOf(viewer))
      throw refusal(404, 'BAD_REQUEST', `You have no such stream. Reserve one with PUT ${path}.`);
    return reserved;
  }

  async function open(token: string, context: Context, res: ServerResponse): Promise<void> {
    const { stream, expiry } = find(token, await policies.authenticate(context));
    if (stream.isOpen) throw refusal(409, 'BAD_REQUEST', 'The stream is open already. Reserve another one.');
    if (res.destroyed) return; // the client has disconnected, and may try again
    clearTimeout(expiry);
    res.once('close', () => drop(token));
    stream.open(res);
  }

  async function operate(token: string, context: Context, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const viewer = await policies.authenticateAndLimit(context);
    find(token, viewer);
    const params = operationOf(await bodyOf(req, maxBodySize));
    if (!params) throw refusal(400, 'BAD_REQUEST', 'The body is not a GraphQL operation.');
    // Find it again: the stream may have ended while the body arrived.
    const operation = find(token, viewer).stream.begin(operationIdIn(params.extensions?.operationId));
    if (!operation) throw refusal(409, 'BAD_REQUEST', 'An operation with this id is already running.');
    try {
      const prepared = await prepareOperation(yoga, maskError, params, context, documentFor);
      if ('run' in prepared) return await begin(operation, prepared, res);
      operation.leave();
      refuse(res, prepared);
    } catch (error) {
      operation.leave();
      throw error;
    }
  }

  /** Once the operation is accepted, its errors are sent over the stream like its results. */
  async function begin(operation: StreamedOperation, prepared: PreparedOperation, res: ServerResponse): Promise<void> {
    const { served } = prepared.args.contextValue as Partial<ServedSchemaContext>; // set by the schema plugin
    const headers = Object.fromEntries(served ? versionHeaders(served) : []);
    // 204: the client has ended the operation meanwhile.
    const accept = () => void (res.writableEnded || res.writeHead(operation.isOver ? 204 : 202, headers).end());
    const opened = prepared.isSubscription ? await subscriptions.open(prepared.args) : undefined;
    if (opened instanceof ClientSubscription) {
      operation.serve(opened);
      return accept();
    }
    if (!operation.owe(prepared))
      throw refusal(429, 'RATE_LIMITED', 'Too many answers of this stream are not read yet. Read them first.');
    accept();
    if (operation.isOver) return;
    try {
      operation.answer(createAnswer(opened ?? (await prepared.run())));
    } catch (error) {
      // For example, a value that JSON cannot represent.
      operation.answer(createAnswer({ errors: [maskError(error)] }));
    }
  }

  async function answer(req: IncomingMessage, res: ServerResponse, query: URLSearchParams): Promise<void> {
    if (isClosed) throw stopping();
    checkSite(req, origins);
    const context: Context = { req, request: plainRequest(req) };
    if (req.method === 'PUT') return reserve(context, res);
    const token = String(req.headers['x-graphql-event-stream-token'] ?? query.get('token') ?? '');
    if (isStreamOpening(req)) return open(token, context, res);
    if (req.method === 'POST') return operate(token, context, req, res);
    if (req.method !== 'DELETE')
      throw refusal(405, 'BAD_REQUEST', 'Open a stream with accept: text/event-stream, and send operations by POST.', {
        allow: 'GET, POST, PUT, DELETE',
      });
    const { stream } = find(token, await policies.authenticate(context));
    stream.stop(operationIdIn(query.get('operationId')));
    res.writeHead(200).end();
  }

  return {
    handler(req, res, next) {
      const [requested, query = ''] = (req.url ?? '').split('?', 2);
      // Yoga answers preflight requests of browsers.
      if (requested !== path || req.method === 'OPTIONS') return next(req, res);
      answer(req, res, new URLSearchParams(query)).catch((error) => {
        const masked = maskError(error);
        if (res.headersSent) res.destroy();
        else refuse(res, [masked]);
      });
    },
    async close(timeoutMs) {
      isClosed = true;
      clearInterval(keepAlive);
      const timeout = setTimeout(() => {
        for (const { stream } of streams.values()) stream.answerPending(unanswered);
      }, timeoutMs);
      const ends = [...streams].map(([token, { stream }]) => stream.answered().then(() => drop(token)));
      await Promise.all(ends);
      clearTimeout(timeout);
    },
  };
}

function ownerOf(viewer: Viewer | 'system'): string {
  return viewer === 'system' ? viewer : JSON.stringify([viewer.id, viewer.tenant]);
}

function unanswered(isMutation: boolean): Answer {
  return createAnswer({ errors: [stoppedBeforeAnswer(isMutation)] });
}
