import { type CheckedPolicies, checkPolicies, type GatewayPolicies, policyNames } from './gateway-policies.ts';
import { checkBoolean, checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';

export interface GatewayOptions extends GatewayPolicies {
  /** @default '127.0.0.1' */
  readonly host?: string;
  /** 0 takes a free one. @default 4000 */
  readonly port?: number;
  /**
   * Host names by which requests may reach the gateway, beside those of the machine itself (`localhost`, `127.0.0.1`, `[::1]`); others are
   * refused with 403. Set it where a tunnel or proxy passes other names on to a development server.
   * @default none in development on a loopback address, else any
   */
  readonly allowedHosts?: readonly string[];
  /**
   * How long a process that is told to stop goes on answering, in seconds: `/health/ready` says 503 from the first moment on, so that a load
   * balancer sends nothing more, and what it has sent by then is answered. Longer than your balancer takes to notice; stopping takes that much longer.
   * @default 5 with `refold start`, else 0
   */
  readonly drainSeconds?: number;
  /**
   * How many proxies stand in front and add the address that they saw to `x-forwarded-for`. Clients that are not authenticated are told
   * apart by address. Set it in production, to 0 if there is none: a client could name any address, and get round limits.
   * @default not known: the address of the connection itself; requests that say they came through a proxy have no address
   */
  readonly proxies?: number;
  /**
   * Whether answers of 4 KiB and more are compressed for clients that accept zstd, br or gzip. Streams never are. Switch it off where a proxy
   * in front compresses.
   * @default true
   */
  readonly compression?: boolean;
  /** GraphiQL and introspection. @default true in development, false in production */
  readonly graphiql?: boolean;
  /** How long a query waits for the position that it demands, in milliseconds. @default 5000 */
  readonly positionTimeout?: number;
  /** How long PostgreSQL may work on one statement of a query, in milliseconds. @default 10000 */
  readonly statementTimeout?: number;
  /** Largest request body, in bytes. @default 262144 */
  readonly maxBodySize?: number;
  /**
   * How long a client may take to send a request, head and body, in milliseconds; whoever is slower is told 408 and cut off. What is
   * answered may take longer, and a subscription or a WebSocket lasts. A client that opens a WebSocket introduces itself within that time.
   * @default 30000
   */
  readonly requestTimeout?: number;
  /** Deepest nesting of an operation's fields. @default 12 */
  readonly maxDepth?: number;
  /** Most rows that an operation may read: lists within lists multiply. @default 50000 */
  readonly maxCost?: number;
  /** Most fields that an operation may select under other names. @default 30 */
  readonly maxAliases?: number;
  /** Most tokens in a document. @default 2000 */
  readonly maxTokens?: number;
  /** Most rows in one page. @default 1000 */
  readonly maxPageSize?: number;
  /** Most subscriptions that one process serves at a time, over all transports. @default 10000 */
  readonly maxSubscriptions?: number;
  /**
   * Most of them for one client: a viewer, or all who are not authenticated and come from one address. More are refused with `RATE_LIMITED`
   * (429). Raise it for a server that subscribes for many people as one viewer.
   * @default 1000
   */
  readonly maxSubscriptionsPerClient?: number;
  /** Most WebSockets and streams of the single connection mode that one process has open at a time, in all. @default 10000 */
  readonly maxSockets?: number;
  /** Most of them for one client, as above. A WebSocket above it is closed with 1013, a stream is refused with 429. @default 1000 */
  readonly maxSocketsPerClient?: number;
}

/** Checked and complete. */
export type CheckedGateway = Omit<
  Required<GatewayOptions>,
  'graphiql' | 'allowedHosts' | 'drainSeconds' | 'proxies' | keyof GatewayPolicies
> &
  CheckedPolicies & {
    readonly graphiql: boolean | undefined;
    readonly drainSeconds: number | undefined;
    readonly proxies: number | undefined;
    readonly allowedHosts: readonly string[] | undefined;
  };

// Without a default.
const optionalNumbers = {
  drainSeconds: { default: 0, min: 0, max: 600 }, // how a process is started decides
  proxies: { default: 0, min: 0, max: 100 }, // nobody knows
} as const satisfies Record<string, NumberRule>;

const numbers = {
  port: { default: 4000, min: 0, max: 65_535 },
  positionTimeout: { default: 5000, min: 0, max: 600_000 },
  requestTimeout: { default: 30_000, min: 100, max: 600_000 },
  statementTimeout: { default: 10_000, min: 1, max: 3_600_000 },
  maxBodySize: { default: 262_144, min: 1024, max: 104_857_600 },
  maxDepth: { default: 12, min: 1, max: 100 },
  maxCost: { default: 50_000, min: 1, max: 1_000_000_000 },
  maxAliases: { default: 30, min: 0, max: 10_000 },
  maxTokens: { default: 2000, min: 50, max: 1_000_000 },
  maxPageSize: { default: 1000, min: 1, max: 100_000 },
  maxSubscriptions: { default: 10_000, min: 0, max: 10_000_000 },
  // A tenth of the process: ten clients together fill it, and an office behind one address has room.
  maxSubscriptionsPerClient: { default: 1000, min: 0, max: 10_000_000 },
  maxSockets: { default: 10_000, min: 0, max: 10_000_000 },
  maxSocketsPerClient: { default: 1000, min: 0, max: 10_000_000 }, // as above
} as const satisfies Record<string, NumberRule>;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkGateway(gateway: GatewayOptions): CheckedGateway {
  refuseUnknown('gateway', gateway, [
    'host',
    'allowedHosts',
    'graphiql',
    'compression',
    ...policyNames,
    ...Object.keys(numbers),
    ...Object.keys(optionalNumbers),
  ]);
  return Object.freeze({
    host: gateway.host ?? '127.0.0.1',
    allowedHosts: gateway.allowedHosts && checkHosts(gateway.allowedHosts),
    drainSeconds: checkOptional(gateway, 'drainSeconds'),
    proxies: checkOptional(gateway, 'proxies'),
    graphiql: gateway.graphiql,
    compression: checkBoolean('gateway.compression', gateway.compression ?? true),
    ...checkPolicies(gateway),
    ...checkNumbers('gateway', gateway, numbers),
  });
}

function checkOptional(gateway: GatewayOptions, name: keyof typeof optionalNumbers): number | undefined {
  return gateway[name] === undefined ? undefined : checkNumbers('gateway', gateway, optionalNumbers)[name];
}

function checkHosts(hosts: readonly string[]): readonly string[] {
  const isName = (name: unknown) =>
    typeof name === 'string' && URL.parse(`http://${name}`)?.host === name.toLowerCase();
  if (Array.isArray(hosts) && hosts.every(isName)) return Object.freeze([...hosts]);
  throw invalidConfig("gateway.allowedHosts lists host names without a port, such as ['shop.example.test'].");
}
