import type { ServerResponse } from 'node:http';
import type { GraphQLError } from 'graphql';
import { processRegularResult } from 'graphql-yoga';
import type { CompiledOperations } from '../operations/compiled-operations.ts';
import {
  operationIn,
  plainMediaType,
  plainRequest,
  type ResultMediaType,
  readBody,
} from '../operations/plain-request.ts';
import type { OperationRequest, Yoga } from '../operations/run-operation.ts';
import { type ServedSchemaContext, versionHeaders } from '../operations/served-schema.ts';
import type { RequestPolicies } from '../policies/request-policies.ts';
import { acceptedEncoding, compress, leastCompressed, varyByEncoding } from '../requests/compression.ts';
import type { HttpHandler } from '../requests/http-handler.ts';
import type { TransportContext } from '../requests/transport-context.ts';
import { positionHeader, writtenPosition } from '../requests/written-position.ts';

export interface PlainPostOptions {
  readonly maskError: (error: unknown) => GraphQLError;
  /** Maximum size of a request body, in bytes. Yoga refuses bodies that announce more. */
  readonly maxBodySize: number;
  /** Returns the document of a request; empty if the request has none. */
  readonly documentFor: (request: OperationRequest) => string;
  readonly policies: RequestPolicies;
  /** Whether long responses are compressed for clients that accept it. */
  readonly isCompressed: boolean;
  readonly compiled: CompiledOperations;
}

/** Yoga's own context has the same members. */
interface Context extends TransportContext {
  /** Set by the schema plugin. */
  served?: ServedSchemaContext['served'];
  readonly res: ServerResponse;
  readonly waitUntil: Yoga['waitUntil'];
}

/**
 * Handles plain POSTs of JSON directly on node:http. They go through yoga's pipeline with all its plugins, but without the Request, the
 * Response and the hooks around them, which take longer than a lookup by key. Only requests that get exactly the same response as from yoga
 * are handled here; all others, and bodies that turn out to be something else, go to yoga.
 *
 * The plugin hooks for requests and responses do not run here: `onRequest`, `onRequestParse`, `onResultProcess` and `onResponse`. What
 * Refold's plugins do in them concerns other requests, or is done below.
 */
export function answerPlainPosts(
  yoga: Yoga,
  { maskError, maxBodySize, documentFor, policies, isCompressed, compiled }: PlainPostOptions,
): HttpHandler {
  const { getResultForParams, waitUntil } = yoga;

  async function responseTo(
    document: string,
    params: OperationRequest,
    context: Context,
    mediaType: ResultMediaType,
  ): Promise<PlainResponse> {
    try {
      await policies.authenticateAndLimit(context);
      const known = await compiled.answer(document, params, context);
      if (known) {
        context.served = known.served;
        return written(known.data, mediaType);
      }
      // The pipeline reads only these parts of the request.
      const input = { params, request: context.request } as unknown as PipelineInput;
      return formatted(await getResultForParams(input, context), mediaType);
    } catch (error) {
      // For example, a value that JSON cannot represent.
      return formatted({ errors: [maskError(error)] }, mediaType);
    }
  }

  async function answer(
    document: string,
    params: OperationRequest,
    mediaType: ResultMediaType,
    context: Context,
  ): Promise<void> {
    const { res } = context;
    const { status, headers, body } = await responseTo(document, params, context, mediaType);
    for (const [name, value] of context.served ? versionHeaders(context.served) : []) headers[name] = value;
    const position = writtenPosition(context);
    if (position !== undefined) headers[positionHeader] = position;
    const length = Buffer.byteLength(body);
    if (isCompressed && length >= leastCompressed) return sendCompressed(res, body, status, headers);
    if (isOver(res)) return;
    headers['content-length'] = String(length);
    res.writeHead(status, headers).end(body);
  }

  return (req, res, next) => {
    const mediaType = plainMediaType(req, maxBodySize);
    if (mediaType === undefined) return next(req, res);
    readBody(req, (body) => {
      const operation = operationIn(body, documentFor);
      // Yoga looks there for a body that was already read.
      if (operation === undefined) return next(Object.assign(req, { body }), res);
      answer(operation.document, operation.params, mediaType, {
        req,
        res,
        waitUntil,
        request: plainRequest(req),
      }).catch((error) => {
        maskError(error); // logs it: a header from a resolver cannot be sent
        res.destroy();
      });
    });
  };
}

/** Whether the client has disconnected, or has already got the response of a stopping process. */
function isOver(res: ServerResponse): boolean {
  return res.destroyed || res.writableEnded;
}

/** Compresses as the plugin does for yoga's responses. */
async function sendCompressed(
  res: ServerResponse,
  body: string,
  status: number,
  headers: Record<string, string>,
): Promise<void> {
  const vary = res.getHeader('vary');
  headers.vary = varyByEncoding(vary === undefined ? undefined : String(vary));
  const encoding = acceptedEncoding(String(res.req.headers['accept-encoding'] ?? ''));
  const sent = encoding ? await compress(encoding, body) : Buffer.from(body);
  if (encoding) headers['content-encoding'] = encoding;
  headers['content-length'] = String(sent.length);
  if (!isOver(res)) res.writeHead(status, headers).end(sent);
}

type PipelineInput = Parameters<Yoga['getResultForParams']>[0];

interface PlainResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** What yoga would send for a result without errors. */
function written(data: string, mediaType: ResultMediaType): PlainResponse {
  return { status: 200, headers: { 'Content-Type': `${mediaType}; charset=utf-8` }, body: `{"data":${data}}` };
}

/** Replaces fetch's Response: yoga creates its responses with it, and only passes the parts on. */
const plainResponses = {
  Response: function plainResponse(body: string, { status, headers }: Omit<PlainResponse, 'body'>): PlainResponse {
    return { status, headers, body };
  },
};

function formatted(result: unknown, mediaType: ResultMediaType): PlainResponse {
  const response: unknown = processRegularResult(result as never, plainResponses as never, mediaType); // typed for yoga's own
  return response as PlainResponse; // created above
}
