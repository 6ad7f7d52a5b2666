import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { reasonOf } from '../../thrown.ts';
import { listen, type PlaceSettings } from './http-server.ts';
import { collectProcessMetrics } from './process-metrics.ts';

export interface HealthServerOptions {
  readonly host: string;
  readonly port: number;
  /** Why appends or reads do not reach the database at the moment; empty if they do. */
  problems(): object;
  /** Why read stores do not respond, by their names. They do not make the process unready: every process is affected alike. @default no problems */
  storeProblems?(): object;
  readonly metrics: Registry;
}

/** What a process without a gateway answers over HTTP: `/health`, `/health/live`, `/health/ready` and `/metrics`. */
export interface HealthServer {
  readonly url: string;
  /** From now on `/health/ready` returns 503. */
  stopping(): void;
  close(): Promise<void>;
}

// In milliseconds. These requests have no body.
const requestTimeout = 10_000;
const closeTimeoutMs = 1000;

const settings: PlaceSettings = {
  port: (port) => `--health-port ${port}, or runtime.healthPort in the configuration`,
  place: '--health-port and HOST, or runtime.healthPort and gateway.host in the configuration',
};

/** @throws RefoldError `PORT_IN_USE`, or `INVALID_CONFIG` if it cannot listen for another reason */
export async function serveHealth({
  host,
  port,
  problems,
  storeProblems = () => ({}),
  metrics,
}: HealthServerOptions): Promise<HealthServer> {
  collectProcessMetrics(metrics);
  let isStopping = false;

  function health(): { readonly ready: boolean } {
    const found = problems();
    const isReachable = Object.keys(found).length === 0;
    const ready = isReachable && !isStopping;
    const stores = storeProblems();
    const more = Object.keys(stores).length > 0 ? { readStores: stores } : {};
    return { ready, ...(isStopping ? { stopping: true } : {}), ...(isReachable ? {} : { problems: found }), ...more };
  }

  async function answer(path: string, res: ServerResponse): Promise<void> {
    res.setHeader('cache-control', 'no-store');
    if (path === '/metrics') {
      const body = await metrics.metrics();
      res.setHeader('content-type', metrics.contentType).end(body);
    } else if (path === '/health/live') res.end();
    else if (path === '/health' || path === '/health/ready') {
      const found = health();
      const status = found.ready || path === '/health' ? 200 : 503;
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(found));
    } else res.writeHead(404, { 'content-type': 'text/plain' }).end('This process serves /health and /metrics.');
  }

  const http = await listen(
    (req: IncomingMessage, res) => {
      const path = (req.url ?? '').replace(/\?.*/, '');
      answer(path, res).catch((error: unknown) => res.writeHead(500).end(reasonOf(error)));
    },
    { host, port, requestTimeout, settings },
  );
  return {
    url: http.url,
    stopping: () => {
      isStopping = true;
    },
    close: () => http.close(closeTimeoutMs, (res) => void res.destroy()),
  };
}
