import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { RefoldError } from '../../errors.ts';

export interface HttpServer {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** From now on every response closes its connection, also of requests that are under way: clients find another server for the next one. */
  drain(): void;
  /** Takes no more requests, and lets those that run end; after `patience` milliseconds those that are left get their last word. */
  close(patience: number, lastWord: (res: ServerResponse) => void): Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds in which a request must have arrived whole: connections that only drip would hold the process's sockets. */
  readonly requestTimeout: number;
}

// A request that is sent just when its idle connection is closed fails with a reset. So clients close first: proxies and load balancers do after
// 60 seconds, and others go by what the answers tell them.
const keepAliveTimeout = 65_000;

// After a restart all clients come back at once, and the system resets some of those that find no place in the queue. Node's 511 are few;
// the system has a limit of its own (`net.core.somaxconn`).
const waitingConnections = 4096;

// For the last words to leave; who does not read them by then is cut off.
const lastWordPatience = 500;

/** @throws RefoldError `PORT_IN_USE`, or `INVALID_CONFIG` where it can't listen for another reason; both say how to choose another place. */
export async function listen(
  listener: RequestListener,
  { host, port, requestTimeout }: ListenOptions,
): Promise<HttpServer> {
  const underWay = new Set<ServerResponse>();
  let isDraining = false;
  const server = createServer(
    {
      requestTimeout,
      headersTimeout: requestTimeout,
      connectionsCheckingInterval: Math.min(requestTimeout, 5000),
      keepAliveTimeout,
      // Some clients offer HTTP/2 with each first request (Java's do); a server may go on as if they did not.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    },
    (req, res) => {
      underWay.add(res);
      res.once('close', () => underWay.delete(res));
      if (isDraining) closesConnection(res);
      listener(req, res);
    },
  );
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host, port, backlog: waitingConnections }, resolve);
  try {
    await promise;
  } catch (cause) {
    throw isTaken(cause) ? portInUse(host, port, cause) : noPlace(host, port, cause);
  }
  server.off('error', reject);
  const address = server.address() as AddressInfo; // listens on a port
  return {
    server,
    port: address.port,
    url: `http://${urlHost(host)}:${address.port}`,
    drain() {
      isDraining = true;
      for (const res of underWay) if (!res.headersSent) closesConnection(res);
    },
    async close(patience, lastWord) {
      const closed = new Promise<void>((done) => server.close(() => done()));
      // Browsers and others open connections ahead of need; Node counts one as idle only after its first request.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      // Connections that are kept alive fall idle one by one, as their last answers end.
      const sweep = setInterval(() => server.closeIdleConnections(), 20);
      let deadline = setTimeout(() => {
        for (const res of underWay) lastWord(res);
        deadline = setTimeout(() => server.closeAllConnections(), lastWordPatience);
      }, patience);
      await closed;
      clearInterval(sweep);
      clearTimeout(deadline);
    },
  };
}

function closesConnection(res: ServerResponse): void {
  res.setHeader('connection', 'close');
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

function portInUse(host: string, port: number, cause: unknown): RefoldError {
  const next = port < 65_535 ? port + 1 : port - 1;
  return new RefoldError(
    'PORT_IN_USE',
    `Port ${port} of ${host} is taken by another program. Stop that program, or choose another port: PORT=${next}, or gateway.port in the configuration (0 takes a free one).`,
    { host, port },
    { cause },
  );
}

function noPlace(host: string, port: number, cause: unknown): RefoldError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new RefoldError(
    'INVALID_CONFIG',
    `The gateway can't listen on port ${port} of ${host}: ${reason}. Choose another place with HOST and PORT, or gateway.host and gateway.port in the configuration.`,
    { host, port },
    { cause },
  );
}

/** An address that listens everywhere is opened as localhost. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
