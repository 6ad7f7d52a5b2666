import { type AdminOptions, adminRules, type CheckedAdmin, checkAdmin } from './admin-options.ts';
import { type CheckedPolicies, checkPolicies, type GatewayPolicies, policyRules } from './gateway-policies.ts';
import { checkBoolean, checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';
import type { OptionRule } from './option-rules.ts';

export interface GatewayOptions extends GatewayPolicies {
  /** The address that the gateway listens on. @default '127.0.0.1' */
  readonly host?: string;
  /** The port that the gateway listens on. 0 picks a free one. @default 4000 */
  readonly port?: number;
  /**
   * Host names that requests may use to reach the gateway, in addition to those of the machine itself (`localhost`, `127.0.0.1`, `[::1]`).
   * Requests with other names are refused with 403. Set it if a tunnel or proxy forwards other names to a development server.
   * @default none in development on a loopback address, else any
   */
  readonly allowedHosts?: readonly string[];
  /**
   * How long a process that is stopping continues to answer, in seconds. During that time `/health/ready` returns 503, the load balancer
   * stops sending requests, and requests that still arrive are answered. Set it longer than your load balancer needs to notice; stopping
   * takes that much longer.
   * @default 5 with `refold start`, else 0
   */
  readonly drainSeconds?: number;
  /**
   * The number of proxies in front of the gateway that append the address they saw to `x-forwarded-for`. Clients that are not authenticated
   * are distinguished by address. Set it in production, to 0 if there is no proxy: otherwise a client could send any address and evade
   * limits.
   * @default unknown: the address of the connection itself; requests that say they came through a proxy have no address
   */
  readonly proxies?: number;
  /**
   * Whether responses of 4 KiB and more are compressed for clients that accept zstd, br or gzip. Streams are never compressed. Switch it
   * off if a proxy in front compresses.
   * @default true
   */
  readonly compression?: boolean;
  /**
   * Whether a query that selects only generated fields is answered by one SQL statement, without the GraphQL executor. The responses are
   * the same either way. Switch it off to compare both, or if a compiled query fails: then the executor answers every operation.
   * @default true
   */
  readonly compiledQueries?: boolean;
  /**
   * Whether each operation is logged, at the level `info`: its name, type, client, duration, outcome and position. Variables and rows are never
   * logged.
   * @default false
   */
  readonly requestLog?: boolean;
  /**
   * Whether one query may read several read stores. Each store is then read in a snapshot of its own, at a position of its own, and a header
   * `refold-position: 1` returns the position of each read model. If false, such a query is refused. Filters never reach another store.
   * @default false
   */
  readonly acrossStores?: boolean;
  /** Whether GraphiQL and introspection are enabled. @default true in development, false in production */
  readonly graphiql?: boolean;
  /** How long a query waits for the position that it requires, in milliseconds. @default 5000 */
  readonly positionTimeout?: number;
  /** How long PostgreSQL may execute one statement of a query, in milliseconds. @default 10000 */
  readonly statementTimeout?: number;
  /** Maximum size of a request body, in bytes. @default 262144 */
  readonly maxBodySize?: number;
  /**
   * Maximum size of an answer, and of a message of a subscription, in bytes that the database sends for it. A larger one is refused with
   * `ANSWER_TOO_LARGE` while it is read. A process holds up to about three times as much for each answer that it makes at the same time.
   * @default 67108864
   */
  readonly maxAnswerSize?: number;
  /**
   * How long a client may take to send a request (head and body), in milliseconds. A slower client gets 408 and is disconnected. The
   * response may take longer; subscriptions and WebSockets are not limited. A client that opens a WebSocket must send `connection_init`
   * within that time.
   * @default 30000
   */
  readonly requestTimeout?: number;
  /** Maximum nesting depth of the fields of an operation. @default 12 */
  readonly maxDepth?: number;
  /** Maximum number of rows that an operation may read. Nested lists multiply. @default 50000 */
  readonly maxCost?: number;
  /** Maximum number of aliased fields in an operation. @default 30 */
  readonly maxAliases?: number;
  /** Maximum number of tokens in a document. @default 2000 */
  readonly maxTokens?: number;
  /** Maximum number of rows in one page. @default 1000 */
  readonly maxPageSize?: number;
  /** Maximum number of concurrent subscriptions of one process, over all transports. @default 10000 */
  readonly maxSubscriptions?: number;
  /**
   * Maximum number of concurrent subscriptions of one client: of a viewer, or of all unauthenticated callers from one address. Further ones
   * are refused with `RATE_LIMITED` (429). Raise it for a server that subscribes on behalf of many people as one viewer.
   * @default 1000
   */
  readonly maxSubscriptionsPerClient?: number;
  /** Maximum number of open WebSockets and single-connection streams of one process. @default 10000 */
  readonly maxSockets?: number;
  /**
   * Maximum number of open WebSockets and streams of one client, as above. A WebSocket above the limit is closed with 1013, a stream is
   * refused with 429. @default 1000
   */
  readonly maxSocketsPerClient?: number;
  /**
   * Who may use the admin page at `/admin` and its API at `/admin/graphql`. They take two more connections to the database.
   * @default none: neither is served. `refold dev` serves both to whoever has the token that it prints
   */
  readonly admin?: AdminOptions;
}

/** The options, checked and complete. */
export type CheckedGateway = Omit<
  Required<GatewayOptions>,
  'graphiql' | 'allowedHosts' | 'drainSeconds' | 'proxies' | 'admin' | keyof GatewayPolicies
> &
  CheckedPolicies & {
    readonly graphiql: boolean | undefined;
    readonly drainSeconds: number | undefined;
    readonly proxies: number | undefined;
    readonly allowedHosts: readonly string[] | undefined;
    readonly admin: CheckedAdmin | undefined;
  };

// Options without a default.
const optionalNumbers = {
  drainSeconds: { default: 0, min: 0, max: 600 }, // the default depends on how the process is started
  proxies: { default: 0, min: 0, max: 100 }, // Refold cannot know
} as const satisfies Record<string, NumberRule>;

const numbers = {
  port: { default: 4000, min: 0, max: 65_535 },
  positionTimeout: { default: 5000, min: 0, max: 600_000 },
  requestTimeout: { default: 30_000, min: 100, max: 600_000 },
  statementTimeout: { default: 10_000, min: 1, max: 3_600_000 },
  maxBodySize: { default: 262_144, min: 1024, max: 104_857_600 },
  // 1,000 rows of 64 KB. A text of JavaScript can't be longer than 512 MiB.
  maxAnswerSize: { default: 67_108_864, min: 65_536, max: 268_435_456 },
  maxDepth: { default: 12, min: 1, max: 100 },
  maxCost: { default: 50_000, min: 1, max: 1_000_000_000 },
  maxAliases: { default: 30, min: 0, max: 10_000 },
  maxTokens: { default: 2000, min: 50, max: 1_000_000 },
  maxPageSize: { default: 1000, min: 1, max: 100_000 },
  maxSubscriptions: { default: 10_000, min: 0, max: 10_000_000 },
  // A tenth of the limit per process: ten clients can fill it, and an office behind one address has enough.
  maxSubscriptionsPerClient: { default: 1000, min: 0, max: 10_000_000 },
  maxSockets: { default: 10_000, min: 0, max: 10_000_000 },
  maxSocketsPerClient: { default: 1000, min: 0, max: 10_000_000 }, // as above
} as const satisfies Record<string, NumberRule>;

export const gatewayRules = {
  host: { kind: 'text', also: 'HOST' },
  allowedHosts: { kind: 'list' },
  graphiql: { kind: 'boolean' },
  compression: { kind: 'boolean' },
  compiledQueries: { kind: 'boolean' },
  requestLog: { kind: 'boolean' },
  acrossStores: { kind: 'boolean' },
  ...policyRules,
  ...numbers,
  port: { ...numbers.port, also: 'PORT' },
  ...optionalNumbers,
  admin: { kind: 'group', of: adminRules },
} as const satisfies Record<keyof GatewayOptions, OptionRule>;

/** @throws RefoldError `INVALID_CONFIG` */
export function checkGateway(gateway: GatewayOptions): CheckedGateway {
  refuseUnknown('gateway', gateway, Object.keys(gatewayRules));
  return Object.freeze({
    host: gateway.host ?? '127.0.0.1',
    allowedHosts: gateway.allowedHosts && checkHosts(gateway.allowedHosts),
    drainSeconds: checkOptional(gateway, 'drainSeconds'),
    proxies: checkOptional(gateway, 'proxies'),
    graphiql: gateway.graphiql,
    admin: gateway.admin && checkAdmin(gateway.admin),
    compression: checkBoolean('gateway.compression', gateway.compression ?? true),
    compiledQueries: checkBoolean('gateway.compiledQueries', gateway.compiledQueries ?? true),
    requestLog: checkBoolean('gateway.requestLog', gateway.requestLog ?? false),
    acrossStores: checkBoolean('gateway.acrossStores', gateway.acrossStores ?? false),
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
