import type { IncomingMessage } from 'node:http';
import { operationOf } from '../operations/plain-request.ts';
import type { OperationRequest } from '../operations/run-operation.ts';

/** How an operation that asks to be answered by server-sent events came. */
export type EventStreamRequest =
  | { readonly method: 'POST' }
  | { readonly method: 'GET'; readonly operation: OperationRequest };

const jsonTypes = /^application\/json(?:; ?charset=[uU][tT][fF]-8)?$/;

/**
 * What the head of a request says, if it is one that clients subscribe with: a POST of JSON, or a browser's EventSource; else undefined, and
 * it is yoga's to answer.
 */
export function eventStreamRequest(req: IncomingMessage, maxBodySize: number): EventStreamRequest | undefined {
  const { headers, url = '' } = req;
  if (!/^text\/event-stream\b/i.test(headers.accept ?? '') || req.httpVersion !== '1.1') return undefined;
  if (req.method === 'POST') {
    const length = Number(headers['content-length']); // NaN where none is announced
    const isPlain = jsonTypes.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined;
    return url === '/graphql' && isPlain && length > 0 && length <= maxBodySize ? { method: 'POST' } : undefined;
  }
  // What a page of another site sends is for the prevention of forged requests to judge.
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  if (req.method !== 'GET' || !url.startsWith('/graphql?') || !['same-origin', 'none'].includes(String(site)))
    return undefined;
  const operation = operationInQuery(new URLSearchParams(url.slice('/graphql?'.length)));
  return operation && { method: 'GET', operation };
}

function operationInQuery(parameters: URLSearchParams): OperationRequest | undefined {
  try {
    const given = [...parameters].map(([name, text]) => [name, jsonNames.has(name) ? JSON.parse(text) : text]);
    return operationOf(Object.fromEntries(given));
  } catch {
    return undefined; // no JSON: yoga tells it
  }
}

const jsonNames = new Set(['variables', 'extensions']);
