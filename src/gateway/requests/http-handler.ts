import type { RequestListener } from 'node:http';

/** Handles a request, or passes it to the next handler of the gateway's list. */
export type HttpHandler = (...request: [...Parameters<RequestListener>, next: RequestListener]) => void;

/** Combines the handlers. Each request goes to the first one; `last` receives what all of them pass on. */
export function inOrder(handlers: readonly HttpHandler[], last: RequestListener): RequestListener {
  return handlers.reduceRight<RequestListener>((next, handler) => (req, res) => handler(req, res, next), last);
}
