import type { IncomingMessage, ServerResponse } from 'node:http';
import { GraphQLError } from 'graphql';
import { createAnswer } from '../subscriptions/answer.ts';

const jsonTypes = /^application\/json(?:; ?charset=[uU][tT][fF]-8)?$/;
// A UUID has 36 characters. The id is kept as long as the operation runs.
const longestId = 100;

/** @throws GraphQLError if the browser says that the request comes from a page of another site, and that site is not allowed */
export function checkSite({ headers }: IncomingMessage, origins: readonly string[]): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none' || origins.includes(headers.origin ?? '')) return;
  throw refusal(
    403,
    'FORBIDDEN',
    'Pages of other sites can not use this endpoint, unless gateway.cors allows their origin.',
  );
}

export function isStreamOpening({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'POST') && /^text\/event-stream\b/i.test(headers.accept ?? '');
}

/** @throws GraphQLError */
export function operationIdIn(id: unknown): string {
  if (typeof id === 'string' && id !== '' && id.length <= longestId) return id;
  throw refusal(400, 'BAD_REQUEST', `An operation has an 'operationId', a text of at most ${longestId} characters.`);
}

/**
 * Reads the JSON body of a request. Never resolves if the client disconnects before. Accepts only the media type for which browsers send a
 * preflight request to other sites.
 *
 * @throws GraphQLError
 */
export function bodyOf(req: IncomingMessage, maxBytes: number): Promise<unknown> {
  const { headers } = req;
  if (!jsonTypes.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    throw refusal(415, 'BAD_REQUEST', "Send 'content-type: application/json', not compressed.");
  // A body with an announced length is refused before it arrives; a chunked body announces none.
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    req.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) return void chunks.push(chunk);
      chunks.length = 0;
      reject(tooLarge(maxBytes));
    });
    req.once('end', () => {
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString()));
      } catch {
        reject(refusal(400, 'BAD_REQUEST', 'The body is not JSON.'));
      }
    });
  });
}

function tooLarge(maxBytes: number): GraphQLError {
  const message = `The request's body is larger than ${maxBytes} bytes.`;
  return refusal(413, 'REQUEST_TOO_LARGE', message, { connection: 'close' });
}

export function refusal(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status, headers } } });
}

/** Sends errors, with the HTTP status that the first one names. */
export function refuse(res: ServerResponse, errors: readonly GraphQLError[]): void {
  const { code, http = {} } = errors[0]?.extensions ?? {};
  const { status, headers } = http as HttpExtensions; // set by Refold
  const byCode = code === 'INTERNAL_SERVER_ERROR' ? 500 : 400;
  const { json } = createAnswer({ errors });
  res.writeHead(status ?? byCode, { ...headers, 'content-type': 'application/json; charset=utf-8' }).end(json);
}

interface HttpExtensions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}
