import type { IncomingMessage, RequestListener } from 'node:http';

/**
 * Puts what a request asks for into the one form that everybody behind reads, a path. A whole URL is what clients send to proxies, and servers
 * must take it (RFC 9112, section 3.2.2). What can't be read is refused here: yoga would answer with a stack.
 */
export function withReadableTargets(listener: RequestListener): RequestListener {
  return (req, res) => {
    if (read(req)) return listener(req, res);
    const message = 'The request names no path, or a host that is none.';
    const body = JSON.stringify({ errors: [{ message, extensions: { code: 'BAD_REQUEST' } }] });
    res.writeHead(400, { 'content-type': 'application/json; charset=utf-8', connection: 'close' }).end(body);
  };
}

function read(req: IncomingMessage): boolean {
  const { url = '', headers } = req;
  if (url.startsWith('/')) return URL.canParse(`http://${headers.host ?? 'localhost'}${url}`);
  const whole = URL.parse(url);
  if (whole?.protocol !== 'http:' && whole?.protocol !== 'https:') return false;
  req.url = whole.pathname + whole.search;
  headers.host = whole.host; // it counts, not the header
  return true;
}
