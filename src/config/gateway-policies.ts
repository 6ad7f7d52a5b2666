import { checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';
import type { OptionRule } from './option-rules.ts';

/** Cross-origin access: which other sites' pages may use the API from a browser. */
export interface CorsOptions {
  /** The allowed origins as browsers send them, such as `https://shop.example.com`. Pages of these origins may open WebSockets too. */
  readonly origins: readonly string[];
  /** Whether requests and WebSockets of these pages may include cookies. Otherwise Refold ignores their cookies. @default false */
  readonly credentials?: boolean;
}

/**
 * How many operations a client may send. A client is identified by the viewer's id and tenant, or else by the address: see
 * `gateway.proxies`.
 */
export interface RateLimitOptions {
  /**
   * Operations allowed in each period. A subscription counts once. A refused request counts as one operation too: a document that cannot be
   * parsed, does not match the schema, is too complex or is not persisted; a body that cannot be read; invalid credentials.
   */
  readonly operations: number;
  /** The period, in seconds. @default 60 */
  readonly seconds?: number;
}

/** Persisted operations: clients send the hash of a document instead of the document. */
export interface PersistedOperationsOptions {
  /** The documents by their SHA-256 in lower-case hex, as graphql-codegen's client preset writes them to `persisted-documents.json`. */
  readonly documents: Readonly<Record<string, string>>;
  /** Whether all other documents are refused. The API then executes only the known operations of its own clients. @default false */
  readonly only?: boolean;
}

/** How field usage of clients is recorded. */
export interface FieldUsageOptions {
  /** How long the records are kept, in days. @default 90 */
  readonly keepDays?: number;
  /**
   * How many clients are distinguished per day, by name and version. The others are counted together. Clients choose their names
   * themselves, so this limits the size of the table.
   * @default 200
   */
  readonly maxClients?: number;
}

export interface GatewayPolicies {
  /** @default none: browsers use the API from its own origin only */
  readonly cors?: CorsOptions;
  /** The limit of each process, by viewer or else by address. @default none */
  readonly rateLimit?: RateLimitOptions;
  /** @default none */
  readonly persistedOperations?: PersistedOperationsOptions;
  /**
   * Whether the schema is a subgraph of Apollo Federation 2: rows are entities by their keys, and `_service` returns the schema to every
   * caller.
   * @default false
   */
  readonly federation?: boolean;
  /**
   * Whether Refold records which client uses which fields, per day. `refold usage` shows it, and it tells which clients a breaking change
   * would affect. It is counted in memory once per operation, and written every ten seconds.
   * @default {}: recorded
   */
  readonly fieldUsage?: false | FieldUsageOptions;
}

const corsRules = {
  origins: { kind: 'list' },
  credentials: { kind: 'boolean' },
} as const satisfies Record<keyof CorsOptions, OptionRule>;

// Without a limit of its own, an option takes every whole number that is one.
const any = Number.MAX_SAFE_INTEGER;

const rateLimitRules = {
  operations: { default: 1, min: 1, max: any }, // required
  seconds: { default: 60, min: 1, max: any },
} as const satisfies Record<keyof RateLimitOptions, OptionRule>;

const persistedRules = {
  documents: { kind: 'json' },
  only: { kind: 'boolean' },
} as const satisfies Record<keyof PersistedOperationsOptions, OptionRule>;

const fieldUsageRules = {
  keepDays: { default: 90, min: 1, max: 3660 },
  maxClients: { default: 200, min: 1, max: 10_000 },
} as const satisfies Record<keyof FieldUsageOptions, NumberRule>;

export const policyRules = {
  cors: { kind: 'group', of: corsRules },
  rateLimit: { kind: 'group', of: rateLimitRules },
  persistedOperations: { kind: 'group', of: persistedRules },
  federation: { kind: 'boolean' },
  fieldUsage: { kind: 'group', of: fieldUsageRules, switch: true },
} as const satisfies Record<keyof GatewayPolicies, OptionRule>;

/** The policies, checked and complete. */
export interface CheckedPolicies {
  readonly cors: Required<CorsOptions> | undefined;
  readonly rateLimit: Required<RateLimitOptions> | undefined;
  readonly persistedOperations: Required<PersistedOperationsOptions> | undefined;
  readonly federation: boolean;
  readonly fieldUsage: false | Required<FieldUsageOptions>;
}

/** @throws RefoldError `INVALID_CONFIG` */
export function checkPolicies({
  cors,
  rateLimit,
  persistedOperations,
  federation = false,
  fieldUsage = {},
}: GatewayPolicies): CheckedPolicies {
  if (typeof federation !== 'boolean')
    throw invalidConfig(`gateway.federation is true or false, found ${String(federation)}.`);
  return {
    cors: cors && checkCors(cors),
    rateLimit: rateLimit && checkRateLimit(rateLimit),
    persistedOperations: persistedOperations && checkPersisted(persistedOperations),
    federation,
    fieldUsage: checkFieldUsage(fieldUsage),
  };
}

function checkCors(cors: CorsOptions): Required<CorsOptions> {
  refuseUnknown('gateway.cors', cors, Object.keys(corsRules));
  if (!Array.isArray(cors.origins) || cors.origins.length === 0)
    throw invalidConfig("gateway.cors.origins lists origins, such as ['https://shop.example.com'].");
  for (const origin of cors.origins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw invalidConfig(
        `gateway.cors.origins holds '${origin}', which is not an origin: scheme, host and port, and nothing after them. Wildcards are not supported.`,
      );
  }
  return Object.freeze({ origins: Object.freeze([...cors.origins]), credentials: cors.credentials ?? false });
}

function checkRateLimit(limit: RateLimitOptions): Required<RateLimitOptions> {
  refuseUnknown('gateway.rateLimit', limit, Object.keys(rateLimitRules));
  const checked = { seconds: 60, ...limit };
  for (const name of ['operations', 'seconds'] as const) {
    const value = checked[name];
    if (!Number.isInteger(value) || value < 1)
      throw invalidConfig(`gateway.rateLimit.${name} is a whole number from 1 on, found ${String(value)}.`);
  }
  return Object.freeze(checked);
}

function checkFieldUsage(usage: false | FieldUsageOptions): CheckedPolicies['fieldUsage'] {
  if (usage === false) return false;
  if (typeof usage !== 'object' || usage === null)
    throw invalidConfig(`gateway.fieldUsage is false or { keepDays, maxClients }, found ${String(usage)}.`);
  refuseUnknown('gateway.fieldUsage', usage, Object.keys(fieldUsageRules));
  return Object.freeze(checkNumbers('gateway.fieldUsage', usage, fieldUsageRules));
}

function checkPersisted(persisted: PersistedOperationsOptions): Required<PersistedOperationsOptions> {
  refuseUnknown('gateway.persistedOperations', persisted, Object.keys(persistedRules));
  for (const [hash, document] of Object.entries(persisted.documents ?? {})) {
    if (!/^[0-9a-f]{64}$/.test(hash) || typeof document !== 'string')
      throw invalidConfig(
        `gateway.persistedOperations.documents maps the SHA-256 of a document, 64 hex digits, to its text; found '${hash}'.`,
      );
  }
  return Object.freeze({ documents: Object.freeze({ ...persisted.documents }), only: persisted.only ?? false });
}
