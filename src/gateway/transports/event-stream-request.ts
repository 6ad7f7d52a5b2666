import type { IncomingMessage } from 'node:http';
import { operationOf } from '../operations/plain-request.ts';
import type { OperationRequest } from '../operations/run-operation.ts';

/** A request for server-sent events, by its method. */
export type EventStreamRequest =
  | { readonly method: 'POST' }
  | { readonly method: 'GET'; readonly operation: OperationRequest };

const jsonTypes = /^application\/json(?:; ?charset=[uU][tT][fF]-8)?$/;

/**
 * Parses the head of a request that subscribes: a POST of JSON, or a browser's EventSource. Undefined for other requests, which yoga
 * handles.
 */
export function eventStreamRequest(req: IncomingMessage, maxBodySize: number): EventStreamRequest | undefined {
  const { headers, url = '' } = req;
  if (!/^text\/event-stream\b/i.test(headers.accept ?? '') || req.httpVersion !== '1.1') return undefined;
  if (req.method === 'POST') {
    const length = Number(headers['content-length']); // NaN if it is missing
    const isPlain = jsonTypes.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined;
    return url === '/graphql' && isPlain && length > 0 && length <= maxBodySize ? { method: 'POST' } : undefined;
  }
  // The CSRF prevention decides about requests from pages of other sites.
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
    return undefined; // not JSON: yoga reports it
  }
}

const jsonNames = new Set(['variables', 'extensions']);
