import type { IncomingMessage, ServerResponse } from 'node:http';
import { GraphQLError } from 'graphql';
import { createAnswer } from '../subscriptions/answer.ts';

const jsonTypes = /^application\/json(?:; ?charset=[uU][tT][fF]-8)?$/;
// A UUID has 36 characters. It is kept for as long as the operation runs.
const longestId = 100;

/** @throws GraphQLError where a browser says that a page of another site sends this, and it is none of those */
export function checkSite({ headers }: IncomingMessage, origins: readonly string[]): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none' || origins.includes(headers.origin ?? '')) return;
  throw refusal(403, 'FORBIDDEN', 'Pages of other sites can not use this, but for those that gateway.cors names.');
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
 * The JSON that a request brings; never comes, if its client leaves before. Only the type that browsers ask before they send it to other
 * sites is read.
 *
 * @throws GraphQLError
 */
export function bodyOf(req: IncomingMessage, maxBytes: number): Promise<unknown> {
  const { headers } = req;
  if (!jsonTypes.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    throw refusal(415, 'BAD_REQUEST', "Send 'content-type: application/json', not compressed.");
  // What is announced is refused before it comes; a body in chunks announces nothing.
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
        reject(refusal(400, 'BAD_REQUEST', 'The body is no JSON.'));
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

/** Answers with errors, by the status that they name. */
export function refuse(res: ServerResponse, errors: readonly GraphQLError[]): void {
  const { code, http = {} } = errors[0]?.extensions ?? {};
  const { status, headers } = http as HttpExtensions; // what ours put there
  const byCode = code === 'INTERNAL_SERVER_ERROR' ? 500 : 400;
  const { json } = createAnswer({ errors });
  res.writeHead(status ?? byCode, { ...headers, 'content-type': 'application/json; charset=utf-8' }).end(json);
}

interface HttpExtensions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}
