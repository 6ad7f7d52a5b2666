import type { IncomingMessage } from 'node:http';
import type { OperationRequest } from './run-operation.ts';

/** The media types in which yoga sends a regular result. */
export type ResultMediaType = 'application/json' | 'application/graphql-response+json';

// Without a charset, or with UTF-8, the only one that JSON has.
const jsonTypes = /^application\/json(?:; ?charset=[uU][tT][fF]-8)?$/;
// A document without these words has a single result, whichever of its operations is executed.
const streamWords = /\b(?:subscription|defer|stream)\b/;
const operationKeys = new Set(['query', 'variables', 'operationName', 'extensions']);

/** Returns the media type of the response if the request head is that of a plain POST of JSON; else undefined. */
export function plainMediaType(req: IncomingMessage, maxBodySize: number): ResultMediaType | undefined {
  if (req.method !== 'POST' || req.url !== '/graphql') return undefined;
  const { headers } = req;
  if (!jsonTypes.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined) return undefined;
  const length = Number(headers['content-length']); // NaN if it is missing
  if (!(length > 0 && length <= maxBodySize)) return undefined;
  return firstAccepted(headers.accept ?? '*/*');
}

/** Chooses among the accepted types as yoga does: the first that fits, regardless of its weight. */
function firstAccepted(accept: string): ResultMediaType | undefined {
  for (const range of accept.replace(/\s/g, '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';');
    if (type === 'text/event-stream' || parameters.some((parameter) => parameter.includes('charset=')))
      return undefined;
    if (type === 'application/graphql-response+json') return type;
    if (type === 'application/json' || type === 'application/*' || type === '*/*') return 'application/json';
    if (type.includes('*')) return undefined;
  }
  return undefined;
}

/** Returns the operation in a body and its document, if yoga would accept it and it has a single result; else undefined. */
export function operationIn(
  body: Buffer,
  documentFor: (request: OperationRequest) => string,
): { readonly params: OperationRequest; readonly document: string } | undefined {
  try {
    const params = operationOf(JSON.parse(body.toString()));
    if (params === undefined) return undefined;
    const document = documentFor(params);
    return document === '' || streamWords.test(document) ? undefined : { params, document };
  } catch {
    return undefined; // not JSON, or an unknown document: yoga reports it
  }
}

/** Returns what a client sent if yoga would accept it as an operation. */
export function operationOf(params: unknown): OperationRequest | undefined {
  return isOperation(params) ? params : undefined;
}

function isOperation(params: unknown): params is OperationRequest {
  if (!isRecord(params) || Object.keys(params).some((key) => !operationKeys.has(key))) return false;
  const { query, variables, operationName, extensions } = params;
  return (
    (query === undefined || typeof query === 'string') &&
    (operationName == null || typeof operationName === 'string') &&
    (variables == null || isRecord(variables)) &&
    (extensions == null || isRecord(extensions))
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Calls back with the whole body; never, if the client disconnects before. */
export function readBody(req: IncomingMessage, whenRead: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.once('end', () => {
    const [only] = chunks;
    whenRead(chunks.length === 1 && only ? only : Buffer.concat(chunks));
  });
}

/** The part of a request that the pipeline reads: plugins read the headers, yoga checks that it is not a GET. */
export function plainRequest({ headers }: IncomingMessage) {
  return {
    method: 'POST',
    url: '/graphql',
    headers: {
      get(name: string): string | null {
        const value = headers[name];
        return typeof value === 'string' ? value : null;
      },
    },
  };
}
