import { connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** A network between clients and a server on 127.0.0.1, which a test makes slow, silent or broken. */
export interface TcpProxy {
  readonly port: number;
  /** The given URL with this proxy's port. */
  through(url: string): string;
  /** New connections go to this port. Open ones stay where they are: `cutAll()` ends them. */
  retarget(port: number): void;
  /**
   * Half-open: accepts bytes and connections, and passes on neither bytes nor ends. Neither side notices the end of the other.
   * `resume()` resets each connection that lost something.
   */
  swallow(): void;
  /** The same for the connections that are open now. New ones pass. */
  swallowOpen(): void;
  /** Holds back what the server sends. `resume()` delivers it. */
  stallFromServer(): void;
  /** Holds back what clients send. `resume()` delivers it. */
  stallToServer(): void;
  /** Each chunk arrives this much later, in both directions. */
  delay(ms: number): void;
  /** Splits each chunk into packets of random length, from one byte on. `random` is as `Math.random`. */
  split(random?: () => number): void;
  /** Restores a network that passes everything on at once. */
  resume(): void;
  /** Resets every open connection on both sides. */
  cutAll(): void;
  /**
   * The next connection whose client sends a matching chunk is cut: the server receives the chunk, and the client receives a reset instead of the
   * first bytes of the server's response. Resolves when that has happened.
   */
  cutAfter(matches: (chunk: Buffer) => boolean): Promise<void>;
  /** The number of connections that clients have open. */
  connections(): number;
  close(): Promise<void>;
}

interface Network {
  swallows: boolean;
  stalled: { fromServer: boolean; toServer: boolean };
  delayMs: number;
  random: (() => number) | undefined;
  cut: { matches(chunk: Buffer): boolean; done(): void } | undefined;
  /** Called at `resume()`. */
  readonly waiting: Set<() => void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether this connection alone is half-open. */
  silent: boolean;
  /** Some of its bytes were swallowed, so it cannot continue. */
  lost: boolean;
  /** Set when the next bytes of the server must not reach the client. */
  cut: (() => void) | undefined;
}

/** The bytes that a source may have in flight before reading pauses. */
const bufferBytes = 1_048_576;

/** Starts a proxy on a free port of 127.0.0.1. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const network: Network = {
    swallows: false,
    stalled: { fromServer: false, toServer: false },
    delayMs: 0,
    random: undefined,
    cut: undefined,
    waiting: new Set(),
  };
  const links = new Set<Link>();
  let target = targetPort;

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const server = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const link: Link = { client, server, silent: false, lost: false, cut: undefined };
    links.add(link);
    relay(network, link, 'toServer');
    relay(network, link, 'fromServer');
    for (const socket of [client, server])
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) links.delete(link);
      });
  });
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(0, '127.0.0.1', resolve);
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy listens on no port');
  const { port } = address;

  function resume(): void {
    network.swallows = false;
    network.stalled = { fromServer: false, toServer: false };
    network.delayMs = 0;
    network.random = undefined;
    for (const link of links) {
      link.silent = false;
      if (link.lost) reset(link);
    }
    for (const wake of network.waiting) wake();
    network.waiting.clear();
  }

  function cutAll(): void {
    for (const link of links) reset(link);
  }

  return {
    port,
    through: (url) => {
      const proxied = new URL(url);
      proxied.port = String(port);
      return proxied.href;
    },
    retarget: (to) => {
      target = to;
    },
    swallow: () => {
      network.swallows = true;
    },
    swallowOpen: () => {
      for (const link of links) link.silent = true;
    },
    stallFromServer: () => {
      network.stalled.fromServer = true;
    },
    stallToServer: () => {
      network.stalled.toServer = true;
    },
    delay: (ms) => {
      network.delayMs = ms;
    },
    split: (random = Math.random) => {
      network.random = random;
    },
    resume,
    cutAll,
    cutAfter: (matches) =>
      new Promise((done) => {
        network.cut = { matches, done };
      }),
    connections: () => [...links].filter((link) => !link.client.destroyed).length,
    close: async () => {
      cutAll();
      resume();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

type Direction = 'toServer' | 'fromServer';

function relay(network: Network, link: Link, direction: Direction): void {
  const [from, to] = direction === 'toServer' ? [link.client, link.server] : [link.server, link.client];
  // Chunks and the end pass one after another, each when it is due.
  let last: Promise<void> = Promise.resolve();
  let inFlight = 0;

  function pass(deliver: () => void | Promise<void>): void {
    const due = performance.now() + network.delayMs;
    last = last.then(async () => {
      const early = due - performance.now();
      if (early > 0) await pause(early);
      while (network.stalled[direction]) await new Promise<void>((resolve) => network.waiting.add(resolve));
      if (network.swallows || link.silent) link.lost = true;
      else await deliver();
    });
  }

  from.on('data', (chunk: Buffer) => {
    inFlight += chunk.length;
    if (inFlight > bufferBytes) from.pause();
    pass(async () => {
      if (direction === 'toServer') noteCut(network, link, chunk);
      else if (link.cut) return link.cut();
      for (const packet of packets(chunk, network.random)) {
        if (to.destroyed) break;
        to.write(packet);
        if (network.random) await nextTurn();
      }
    });
    pass(() => {
      inFlight -= chunk.length;
      if (inFlight <= bufferBytes) from.resume();
    });
  });
  from.on('end', () => pass(() => void to.end()));
  // An error is a reset of this side, which 'close' passes on.
  from.on('error', () => {});
  from.on('close', () => pass(() => void to.destroy()));
}

function noteCut(network: Network, link: Link, chunk: Buffer): void {
  const cut = network.cut;
  if (!cut?.matches(chunk)) return;
  network.cut = undefined;
  link.cut = () => {
    reset(link);
    cut.done();
  };
}

function packets(chunk: Buffer, random: (() => number) | undefined): readonly Buffer[] {
  if (!random) return [chunk];
  const parts: Buffer[] = [];
  for (let start = 0; start < chunk.length; ) {
    // Mostly a few bytes, sometimes a whole page: headers are split, and long responses still end.
    const length = random() < 0.5 ? 1 + Math.floor(random() * 8) : 1 + Math.floor(random() * 4096);
    parts.push(chunk.subarray(start, start + length));
    start += length;
  }
  return parts;
}

function reset(link: Link): void {
  for (const socket of [link.client, link.server])
    if (!socket.destroyed) {
      if (socket.connecting) socket.destroy();
      else socket.resetAndDestroy();
    }
}
