import type { IncomingMessage, RequestListener } from 'node:http';

/** Whether a request names a host that is this gateway. */
export type IsKnownHost = (request: Pick<IncomingMessage, 'headers'>) => boolean;

export interface KnownHostsOptions {
  /** Where the gateway listens. */
  readonly host: string;
  readonly development: boolean;
  /** Names beside those of this machine; undefined where none were configured. */
  readonly allowedHosts: readonly string[] | undefined;
}

/**
 * A page of any site can have its own name resolve to 127.0.0.1, and then read what a server on the visitor's machine answers: to the browser
 * it is the same site (DNS rebinding). The `host` header tells. A server of a developer has no authentication, so it is checked there; in
 * production only where `gateway.allowedHosts` is set, since a proxy in front may pass on any name.
 */
export function knownHosts({ host, development, allowedHosts }: KnownHostsOptions): IsKnownHost {
  if (allowedHosts === undefined && !(development && isOwnName(host))) return () => true;
  const allowed = new Set((allowedHosts ?? []).map((name) => name.toLowerCase()));
  return ({ headers }) => {
    const name = hostName(headers.host);
    return name !== undefined && (isOwnName(name) || allowed.has(name));
  };
}

export function withKnownHosts(listener: RequestListener, isKnown: IsKnownHost): RequestListener {
  return (req, res) => {
    if (isKnown(req)) return listener(req, res);
    const message =
      'This server does not answer for the host that the request names. Add it to gateway.allowedHosts if it should.';
    const body = JSON.stringify({ errors: [{ message, extensions: { code: 'FORBIDDEN' } }] });
    res.writeHead(403, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
  };
}

function hostName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  return URL.parse(`http://${header}`)?.hostname.toLowerCase();
}

/** Names and addresses of this machine that no other can have. */
function isOwnName(name: string): boolean {
  const own = name.toLowerCase();
  return (
    own === 'localhost' || own.endsWith('.localhost') || own === '[::1]' || own === '::1' || /^127(\.\d+){3}$/.test(own)
  );
}
