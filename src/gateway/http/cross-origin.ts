import type { IncomingMessage } from 'node:http';
import type { CorsOptions } from '../../config/gateway-policies.ts';
import type { HttpHandler } from '../requests/http-handler.ts';
import { isOwnOrigin } from '../requests/own-origin.ts';
import { positionHeader } from '../requests/written-position.ts';

// The response headers about retries, versions and written positions. Browsers hide them from pages of other sites unless they are listed
// here.
const exposedHeaders = ['retry-after', 'deprecation', 'sunset', 'refold-deprecated', 'refold-canary', positionHeader];
// PUT and DELETE are for streams of many operations.
const methods = ['GET', 'POST', 'PUT', 'DELETE'];

/**
 * Adds the CORS headers to each response, whichever part of the gateway sends it, and answers preflight requests.
 *
 * Yoga's own rules are switched off: with several origins they allow the origin `null` for every origin that is not listed. A sandboxed
 * frame on any site has that origin.
 */
export function withCrossOrigin(cors: Required<CorsOptions> | undefined): HttpHandler {
  if (!cors) return (req, res, next) => next(req, res);
  const allowed = new Set(cors.origins);
  return (req, res, next) => {
    const { origin, 'access-control-request-headers': asked } = req.headers;
    const isPreflight = req.method === 'OPTIONS';
    // For caches, also if the origin is missing or not listed: the response to another origin differs.
    res.setHeader('vary', isPreflight ? 'origin, access-control-request-headers' : 'origin');
    if (origin !== undefined && allowed.has(origin)) {
      res.setHeader('access-control-allow-origin', origin);
      if (cors.credentials) res.setHeader('access-control-allow-credentials', 'true');
      else dropForeignCookies(req, cors);
      res.setHeader('access-control-expose-headers', exposedHeaders.join(', '));
      if (isPreflight) {
        res.setHeader('access-control-allow-methods', methods.join(', '));
        if (asked !== undefined) res.setHeader('access-control-allow-headers', asked);
      }
    }
    if (isPreflight) res.writeHead(204, { 'content-length': 0 }).end();
    else next(req, res);
  };
}

/**
 * Without `credentials`, pages of listed origins act without the visitor's cookies. A browser enforces that for `fetch`, but it sends
 * cookies with every WebSocket, and with requests whose response it then hides.
 */
export function dropForeignCookies({ headers }: IncomingMessage, cors: Required<CorsOptions> | undefined): void {
  if (cors && !cors.credentials && headers.origin !== undefined && !isOwnOrigin(headers)) delete headers.cookie;
}
