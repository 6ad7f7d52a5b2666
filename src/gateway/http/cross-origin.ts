import { type CORSOptions, getCORSHeadersByRequestAndOptions } from '@whatwg-node/server';
import type { CorsOptions } from '../../config/gateway-policies.ts';
import { plainRequest } from '../operations/plain-request.ts';
import type { HttpHandler } from '../requests/http-handler.ts';
import { positionHeader } from '../requests/written-position.ts';

// The response headers about retries, versions and written positions. Browsers hide them from pages of other sites unless they are listed
// here.
const exposedHeaders = ['retry-after', 'deprecation', 'sunset', 'refold-deprecated', 'refold-canary', positionHeader];
// PUT and DELETE are for streams of many operations.
const methods = ['GET', 'POST', 'PUT', 'DELETE'];

/** The CORS rules in yoga's format. */
export function crossOriginRules(cors: Required<CorsOptions> | undefined): CORSOptions {
  return cors ? { origin: [...cors.origins], credentials: cors.credentials, methods, exposedHeaders } : false;
}

/** Adds the CORS headers to each response, whichever part of the gateway sends it. */
export function withCrossOrigin(rules: CORSOptions): HttpHandler {
  if (!rules) return (req, res, next) => next(req, res);
  return (req, res, next) => {
    // Only the headers of the request are used.
    const headers = getCORSHeadersByRequestAndOptions(plainRequest(req) as unknown as Request, rules);
    for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(name, value);
    next(req, res);
  };
}
