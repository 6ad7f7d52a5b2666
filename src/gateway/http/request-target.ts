import type { IncomingMessage } from 'node:http';
import type { HttpHandler } from '../requests/http-handler.ts';

/**
 * Normalizes the request target to a path. Clients send a whole URL to proxies, and servers must accept it (RFC 9112, section 3.2.2).
 * Invalid targets are refused here; yoga would respond with a stack trace.
 */
export const withReadableTargets: HttpHandler = (req, res, next) => {
  if (read(req)) return next(req, res);
  const message = 'The request has no path, or its host is not valid.';
  const body = JSON.stringify({ errors: [{ message, extensions: { code: 'BAD_REQUEST' } }] });
  res.writeHead(400, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
};

function read(req: IncomingMessage): boolean {
  const { url = '', headers } = req;
  if (url.startsWith('/')) return URL.canParse(`http://${headers.host ?? 'localhost'}${url}`);
  const whole = URL.parse(url);
  if (whole?.protocol !== 'http:' && whole?.protocol !== 'https:') return false;
  req.url = whole.pathname + whole.search;
  headers.host = whole.host; // the URL takes precedence over the header
  return true;
}
