import type { RequestListener } from 'node:http';
import { type CORSOptions, getCORSHeadersByRequestAndOptions } from '@whatwg-node/server';
import type { CorsOptions } from '../../config/gateway-policies.ts';
import { plainRequest } from '../operations/plain-request.ts';
import { positionHeader } from '../requests/written-position.ts';

// What answers tell in headers: when to come again, which version they are of, and what was written. Browsers show pages of other sites no header unasked.
const exposedHeaders = ['retry-after', 'deprecation', 'sunset', 'refold-deprecated', 'refold-canary', positionHeader];
// The last two: streams of many operations.
const methods = ['GET', 'POST', 'PUT', 'DELETE'];

/** What pages of other sites may do, in yoga's words. */
export function crossOriginRules(cors: Required<CorsOptions> | undefined): CORSOptions {
  return cors ? { origin: [...cors.origins], credentials: cors.credentials, methods, exposedHeaders } : false;
}

/** Tells browsers on each answer whether the page of another site that asked may read it, whoever of the gateway answers. */
export function withCrossOrigin(listener: RequestListener, rules: CORSOptions): RequestListener {
  if (!rules) return listener;
  return (req, res) => {
    // Of the request, only headers are looked at.
    const headers = getCORSHeadersByRequestAndOptions(plainRequest(req) as unknown as Request, rules);
    for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(name, value);
    listener(req, res);
  };
}
