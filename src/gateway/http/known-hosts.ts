import type { IncomingMessage } from 'node:http';
import type { HttpHandler } from '../requests/http-handler.ts';

/** Whether the host that a request names is this gateway. */
export type IsKnownHost = (request: Pick<IncomingMessage, 'headers'>) => boolean;

export interface KnownHostsOptions {
  /** The address that the gateway listens on. */
  readonly host: string;
  readonly development: boolean;
  /** Names in addition to those of this machine; undefined if none are configured. */
  readonly allowedHosts: readonly string[] | undefined;
}

/**
 * Protects against DNS rebinding. A page of any site can make its own name resolve to 127.0.0.1, and then read the responses of a server on
 * the visitor's machine, because to the browser it is the same site. The `host` header reveals it. A development server has no
 * authentication, so it always checks. In production the check is on only if `gateway.allowedHosts` is set, because a proxy in front may
 * forward any name.
 */
export function knownHosts({ host, development, allowedHosts }: KnownHostsOptions): IsKnownHost {
  if (allowedHosts === undefined && !(development && isOwnName(host))) return () => true;
  const allowed = new Set((allowedHosts ?? []).map((name) => name.toLowerCase()));
  return ({ headers }) => {
    const name = hostName(headers.host);
    return name !== undefined && (isOwnName(name) || allowed.has(name));
  };
}

export function withKnownHosts(isKnown: IsKnownHost): HttpHandler {
  return (req, res, next) => {
    if (isKnown(req)) return next(req, res);
    const message =
      'This server does not serve the host that the request names. To allow it, add it to gateway.allowedHosts.';
    const body = JSON.stringify({ errors: [{ message, extensions: { code: 'FORBIDDEN' } }] });
    res.writeHead(403, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
  };
}

function hostName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  return URL.parse(`http://${header}`)?.hostname.toLowerCase();
}

/** Whether it is a name or address that only this machine can have. */
function isOwnName(name: string): boolean {
  const own = name.toLowerCase();
  return (
    own === 'localhost' || own.endsWith('.localhost') || own === '[::1]' || own === '::1' || /^127(\.\d+){3}$/.test(own)
  );
}
