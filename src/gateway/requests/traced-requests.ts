import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beginSpan, traceOfHeaders, traceparent } from '../../tracing.ts';
import type { HttpHandler } from './http-handler.ts';

// Load balancers and Prometheus ask every few seconds, and nobody looks for the traces.
const untracedPaths = /^\/(?:health\/|metrics\b)/;
const routes: ReadonlySet<string> = new Set(['/graphql', '/graphql/stream', '/admin/graphql']);
const methods: ReadonlySet<string> = new Set([
  ...['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE'],
]);

/**
 * Traces requests while tracing is on, by OpenTelemetry's conventions of HTTP, and continues the trace of their headers. If the program has instrumented `node:http`
 * itself, its span is under way already and is continued.
 */
export const withTracedRequests: HttpHandler = (req, res, next) => {
  const [path = ''] = (req.url ?? '').split('?', 1);
  if (untracedPaths.test(path) || traceparent() !== undefined) return next(req, res);
  const route = routes.has(path) ? path : undefined;
  const method = methods.has(req.method ?? '') ? req.method : '_OTHER';
  const span = beginSpan([method === '_OTHER' ? 'HTTP' : method, route].filter(Boolean).join(' '), {
    kind: 'server',
    within: traceOfHeaders(req.headers),
    attributes: {
      'http.request.method': method,
      'http.request.method_original': method === '_OTHER' ? req.method : undefined,
      'http.route': route,
      'url.path': path,
      'url.scheme': 'http',
      'network.protocol.version': req.httpVersion,
      ...addressOf(req),
    },
  });
  res.once('close', () => {
    span.set({ 'http.response.status_code': statusOf(res) });
    if (res.statusCode >= 500) span.fail(String(res.statusCode));
    span.end();
  });
  // What reads the body and writes the response runs later, in their listeners.
  span.bind(req);
  span.bind(res);
  span.run(() => next(req, res));
};

function statusOf({ headersSent, statusCode }: ServerResponse): number | undefined {
  return headersSent ? statusCode : undefined;
}

function addressOf({ headers, socket }: IncomingMessage) {
  const host = URL.parse(`http://${headers.host ?? ''}`)?.hostname;
  const { port }: Partial<AddressInfo> = socket.address();
  return { 'server.address': host, 'server.port': port };
}
