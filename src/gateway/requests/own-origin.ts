import type { IncomingHttpHeaders } from 'node:http';

/** Whether a page of the gateway's own host sends a request. The origin `null` of sandboxed frames has no host. */
export function isOwnOrigin({ origin, host }: IncomingHttpHeaders): boolean {
  const sender = URL.parse(origin ?? '')?.host;
  return sender !== undefined && sender === host;
}
