import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';

export interface HttpServer {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /**
   * From now on every response closes its connection, also those of running requests: clients connect to another server for the next
   * request.
   */
  drain(): void;
  /** Accepts no more requests, and waits for running ones. After the timeout, `respond` answers the rest. */
  close(timeoutMs: number, respond: (res: ServerResponse) => void): Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds within which a whole request must arrive. Otherwise slow connections would hold the process's sockets. */
  readonly requestTimeout: number;
  /** How a user sets host and port, for messages. @default the gateway's */
  readonly settings?: PlaceSettings;
}

/** How a user sets the place that a server listens at. */
export interface PlaceSettings {
  /** Sets this port, such as `PORT=4001, or gateway.port in the configuration`. */
  readonly port: (port: number) => string;
  /** Such as `HOST and PORT, or gateway.host and gateway.port in the configuration`. */
  readonly place: string;
}

const gatewaySettings: PlaceSettings = {
  port: (port) => `PORT=${port}, or gateway.port in the configuration`,
  place: 'HOST and PORT, or gateway.host and gateway.port in the configuration',
};

// In milliseconds. A request that is sent just when the server closes its idle connection fails with a reset. So the client has to close
// first: proxies and load balancers do after 60 seconds, other clients follow the response headers.
const keepAliveTimeout = 65_000;

// After a restart all clients reconnect at once, and the system resets connections that do not fit into the queue. Node's default of 511 is
// too small. The system has a limit of its own (`net.core.somaxconn`).
const waitingConnections = 4096;

// In milliseconds, to send the last responses. Clients that have not read them by then are disconnected.
const lastResponseTimeoutMs = 500;

/**
 * @throws RefoldError `PORT_IN_USE`, or `INVALID_CONFIG` if it cannot listen for another reason. Both say how to choose another address.
 */
export async function listen(
  listener: RequestListener,
  { host, port, requestTimeout, settings = gatewaySettings }: ListenOptions,
): Promise<HttpServer> {
  const underWay = new Set<ServerResponse>();
  let isDraining = false;
  const server = createServer(
    {
      requestTimeout,
      headersTimeout: requestTimeout,
      connectionsCheckingInterval: Math.min(requestTimeout, 5000),
      keepAliveTimeout,
      // Some clients (such as Java's) offer HTTP/2 with each first request; a server may ignore that.
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
    const place = { host, port, settings };
    throw isTaken(cause) ? portInUse(place, cause) : noPlace(place, cause);
  }
  server.off('error', reject);
  const address = server.address() as AddressInfo; // it listens on a port
  return {
    server,
    port: address.port,
    url: `http://${urlHost(host)}:${address.port}`,
    drain() {
      isDraining = true;
      for (const res of underWay) if (!res.headersSent) closesConnection(res);
    },
    async close(timeoutMs, respond) {
      const closed = new Promise<void>((done) => server.close(() => done()));
      // Browsers open connections in advance; Node counts a connection as idle only after its first request.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      // Kept-alive connections become idle one by one, as their last responses end.
      const sweep = setInterval(() => server.closeIdleConnections(), 20);
      let deadline = setTimeout(() => {
        for (const res of underWay) respond(res);
        deadline = setTimeout(() => server.closeAllConnections(), lastResponseTimeoutMs);
      }, timeoutMs);
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

type Place = Pick<Required<ListenOptions>, 'host' | 'port' | 'settings'>;

function portInUse({ host, port, settings }: Place, cause: unknown): RefoldError {
  const next = port < 65_535 ? port + 1 : port - 1;
  return new RefoldError(
    'PORT_IN_USE',
    `Port ${port} of ${host} is taken by another program. Stop that program, or choose another port: ${settings.port(next)} (0 takes a free one).`,
    { host, port },
    { cause },
  );
}

function noPlace({ host, port, settings }: Place, cause: unknown): RefoldError {
  const reason = reasonOf(cause);
  return new RefoldError(
    'INVALID_CONFIG',
    `This process can't listen on port ${port} of ${host}: ${reason}. Choose another place with ${settings.place}.`,
    { host, port },
    { cause },
  );
}

/** The URL for an address; the wildcard addresses are shown as localhost. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
