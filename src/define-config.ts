import type { Command } from './commands/define-command.ts';
import { invalidDeclaration, RefoldError } from './errors.ts';
import { closest } from './events/closest.ts';
import type { Import } from './events/define-import.ts';
import type { EventFamily } from './events/event-family.ts';
import { checkRelations } from './projections/check-relations.ts';
import type { Projection } from './projections/projection.ts';

/** How long consumers wait between looks at the log where no notification comes: from `min`, growing by `step` up to `max`, each ± `jitter`. */
export interface PollingOptions {
  /** Milliseconds. @default 100 */
  readonly min?: number;
  /** Milliseconds. @default 2000 */
  readonly max?: number;
  /** Milliseconds added after each look that found nothing. @default 100 */
  readonly step?: number;
  /** Share of the interval, 0 to 1, drawn at random so that processes do not look in step. @default 0.2 */
  readonly jitter?: number;
}

export interface DatabaseOptions {
  /** `postgres://…`. Without one, Refold runs an embedded server with its data in `.refold/`. */
  readonly url?: string;
  /** Connections of this process for queries, appends and batches. @default 10 */
  readonly maxConnections?: number;
  /** Schema of the read tables and their stable views. @default 'read_models' */
  readonly readSchema?: string;
  /**
   * Whether PostgreSQL wakes this process with LISTEN and NOTIFY. Set it to false behind a pooler in transaction mode (PgBouncer and its
   * like); `runtime.ownership` must be `'lease'` then. Where it is false all news are found by polling, nothing is kept in a session, and
   * `gateway.statementTimeout` is set in each transaction.
   * @default true
   */
  readonly notifications?: boolean;
  /**
   * Whether statements that run often are prepared once per connection. Set it to false behind a pooler that can't keep track of them:
   * PgBouncer before 1.21, or with `max_prepared_statements = 0`.
   * @default true
   */
  readonly prepare?: boolean;
}

export interface RuntimeOptions {
  /** Events read at once. Larger pages catch up faster and hold more memory. @default 5000 */
  readonly pageSize?: number;
  readonly polling?: PollingOptions;
  /**
   * How processes agree on who maintains what. `'advisory'`: a lock in a session; a killed process's work is free within a second. `'lease'`: a
   * row that is renewed; needs no session, so it is the one for a pooler in transaction mode, and a host that vanishes or hangs frees
   * its work after `leaseSeconds`, so prefer it for several hosts. All processes of an application must have the same.
   * @default 'advisory'
   */
  readonly ownership?: 'advisory' | 'lease';
  /**
   * How long a lease lasts without a renewal, in seconds; it is renewed every third of that. Shorter: faster fail-over after a crash, but a
   * process that stalls for so long loses its work to another. Only for `ownership: 'lease'`.
   * @default 30
   */
  readonly leaseSeconds?: number;
}

export interface GatewayOptions {
  /** @default '127.0.0.1' */
  readonly host?: string;
  /** 0 takes a free one. @default 4000 */
  readonly port?: number;
  /** GraphiQL and introspection. @default true in development, false in production */
  readonly graphiql?: boolean;
  /** How long a query waits for the position that it demands, in milliseconds. @default 5000 */
  readonly positionTimeout?: number;
  /** How long PostgreSQL may work on one statement of a query, in milliseconds. @default 10000 */
  readonly statementTimeout?: number;
  /** Largest request body, in bytes. @default 262144 */
  readonly maxBodySize?: number;
  /** Deepest nesting of an operation's fields. @default 12 */
  readonly maxDepth?: number;
  /** Most fields that an operation may select under other names. @default 30 */
  readonly maxAliases?: number;
  /** Most tokens in a document. @default 2000 */
  readonly maxTokens?: number;
  /** Most rows in one page. @default 1000 */
  readonly maxPageSize?: number;
  /** Most subscriptions that one process serves at a time. @default 10000 */
  readonly maxSubscriptions?: number;
}

export interface ConfigOptions {
  /** Event families that no projection and no command names; the others are found by themselves. */
  readonly events?: readonly EventFamily[];
  readonly projections?: readonly Projection[];
  readonly commands?: readonly Command[];
  /** What `refold import` can read. */
  readonly imports?: readonly Import[];
  readonly database?: DatabaseOptions;
  readonly runtime?: RuntimeOptions;
  readonly gateway?: GatewayOptions;
  /** Freezes rows and events, rebuilds versions whose code changed, serves GraphiQL. @default `NODE_ENV` is not 'production' */
  readonly development?: boolean;
}

/** A checked, complete and frozen configuration. Made by {@link defineConfig}. */
export interface Config {
  readonly kind: 'config';
  readonly families: readonly EventFamily[];
  readonly projections: readonly Projection[];
  readonly commands: readonly Command[];
  readonly imports: readonly Import[];
  readonly database: Omit<Required<DatabaseOptions>, 'url'> & { readonly url: string | undefined };
  readonly runtime: Omit<Required<RuntimeOptions>, 'polling'> & { readonly polling: Required<PollingOptions> };
  readonly gateway: Omit<Required<GatewayOptions>, 'graphiql'> & { readonly graphiql: boolean | undefined };
  readonly development: boolean | undefined;
}

interface NumberRule {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

const numbers = {
  database: { maxConnections: { default: 10, min: 2, max: 1000 } },
  runtime: {
    pageSize: { default: 5000, min: 1, max: 100_000 },
    leaseSeconds: { default: 30, min: 1, max: 3600 },
  },
  polling: {
    min: { default: 100, min: 1, max: 3_600_000 },
    max: { default: 2000, min: 1, max: 3_600_000 },
    step: { default: 100, min: 0, max: 3_600_000 },
  },
  gateway: {
    port: { default: 4000, min: 0, max: 65_535 },
    positionTimeout: { default: 5000, min: 0, max: 600_000 },
    statementTimeout: { default: 10_000, min: 1, max: 3_600_000 },
    maxBodySize: { default: 262_144, min: 1024, max: 104_857_600 },
    maxDepth: { default: 12, min: 1, max: 100 },
    maxAliases: { default: 30, min: 0, max: 10_000 },
    maxTokens: { default: 2000, min: 50, max: 1_000_000 },
    maxPageSize: { default: 1000, min: 1, max: 100_000 },
    maxSubscriptions: { default: 10_000, min: 0, max: 10_000_000 },
  },
} as const satisfies Record<string, Record<string, NumberRule>>;

/**
 * Declares an application: its projections, its commands and how it runs. Everything is checked here, before anything connects.
 *
 * @throws RefoldError `INVALID_CONFIG` for an unknown or impossible option, `INVALID_DECLARATION` for declarations that don't fit together.
 * @example
 * export default defineConfig({ projections: [cartSummaryV1, cartSummaryV2], commands: [addProductItem] });
 */
export function defineConfig(options: ConfigOptions): Config {
  refuseUnknown('config', options, [
    'events',
    'projections',
    'commands',
    'imports',
    'database',
    'runtime',
    'gateway',
    'development',
  ]);
  const projections = options.projections ?? [];
  const commands = options.commands ?? [];
  checkKinds(options);
  const families = distinctFamilies([
    ...(options.events ?? []),
    ...projections.flatMap((projection) => projection.families),
    ...commands.map((command) => command.family),
  ]);
  checkProjections(projections);
  checkRelations(projections);
  checkNames(projections, commands);
  const { database = {}, runtime = {}, gateway = {} } = options;
  const { polling = {} } = runtime;
  refuseUnknown('database', database, [
    'url',
    'readSchema',
    'notifications',
    'prepare',
    ...Object.keys(numbers.database),
  ]);
  refuseUnknown('runtime', runtime, ['polling', 'ownership', ...Object.keys(numbers.runtime)]);
  refuseUnknown('runtime.polling', polling, ['jitter', ...Object.keys(numbers.polling)]);
  refuseUnknown('gateway', gateway, ['host', 'graphiql', ...Object.keys(numbers.gateway)]);
  const readSchema = database.readSchema ?? 'read_models';
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(readSchema) || readSchema === 'refold' || readSchema.startsWith('pg_')) {
    throw invalidConfig(
      `database.readSchema '${readSchema}' can't hold read tables; use a name such as 'read_models'.`,
    );
  }
  if (database.url !== undefined) checkDatabaseUrl('database.url', database.url);
  const ownership = runtime.ownership ?? 'advisory';
  if (ownership !== 'advisory' && ownership !== 'lease')
    throw invalidConfig(`runtime.ownership is 'advisory' or 'lease', found '${String(ownership)}'.`);
  if (database.notifications === false && ownership === 'advisory')
    throw invalidConfig(
      "database.notifications is false, as behind a pooler in transaction mode, where advisory locks don't hold. Set runtime.ownership to 'lease'.",
    );
  if (runtime.leaseSeconds !== undefined && ownership !== 'lease')
    throw invalidConfig("runtime.leaseSeconds is only for runtime.ownership 'lease'. Set both, or none.");
  const jitter = polling.jitter ?? 0.2;
  if (!(jitter >= 0 && jitter <= 1))
    throw invalidConfig(`runtime.polling.jitter is a share from 0 to 1, found ${jitter}.`);
  const checkedPolling = Object.freeze({ jitter, ...checkNumbers('runtime.polling', polling, numbers.polling) });
  if (checkedPolling.min > checkedPolling.max)
    throw invalidConfig(`runtime.polling.min (${checkedPolling.min}) is above max (${checkedPolling.max}).`);

  return Object.freeze({
    kind: 'config',
    families,
    projections: Object.freeze([...projections]),
    commands: Object.freeze([...commands]),
    imports: Object.freeze([...(options.imports ?? [])]),
    database: Object.freeze({
      url: database.url,
      readSchema,
      notifications: checkBoolean('database.notifications', database.notifications ?? true),
      prepare: checkBoolean('database.prepare', database.prepare ?? true),
      ...checkNumbers('database', database, numbers.database),
    }),
    runtime: Object.freeze({
      polling: checkedPolling,
      ownership,
      ...checkNumbers('runtime', runtime, numbers.runtime),
    }),
    gateway: Object.freeze({
      host: gateway.host ?? '127.0.0.1',
      graphiql: gateway.graphiql,
      ...checkNumbers('gateway', gateway, numbers.gateway),
    }),
    development: options.development,
  } satisfies Config);
}

/** @throws RefoldError `INVALID_CONFIG`; the message does not hold the URL, which may hold a password. */
export function checkDatabaseUrl(source: string, url: string): void {
  if (!/^postgres(ql)?:\/\//.test(url))
    throw invalidConfig(`${source} is no PostgreSQL address; it starts with 'postgres://'.`);
  if (!URL.canParse(url))
    throw invalidConfig(
      `${source} can't be read. Write it as 'postgres://user:password@host:port/database', with percent signs for what is special in the password.`,
    );
}

function refuseUnknown(subject: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidConfig(`unknown option '${name}' of ${subject}.${closest(name, known)}`);
  }
}

function checkNumbers<const R extends Record<string, NumberRule>>(
  subject: string,
  given: object,
  rules: R,
): { [N in keyof R]: number } {
  const entries = Object.entries(rules).map(([name, rule]) => {
    const value: unknown = (given as Record<string, unknown>)[name] ?? rule.default; // any object is looked at by its options' names
    if (typeof value !== 'number' || !Number.isInteger(value) || value < rule.min || value > rule.max) {
      throw invalidConfig(
        `${subject}.${name} is a whole number from ${rule.min} to ${rule.max}, found ${String(value)}.`,
      );
    }
    return [name, value] as const;
  });
  return Object.fromEntries(entries) as { [N in keyof R]: number }; // one entry per rule
}

function checkBoolean(subject: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidConfig(`${subject} is true or false, found ${String(value)}.`);
  return value;
}

function checkKinds(options: ConfigOptions): void {
  const lists = [
    ['events', 'event-family', 'defineEvents'],
    ['projections', 'projection', 'defineProjection'],
    ['commands', 'command', 'defineCommand'],
    ['imports', 'import', 'defineImport'],
  ] as const;
  for (const [list, kind, maker] of lists) {
    for (const declared of options[list] ?? []) {
      if (declared?.kind !== kind) throw invalidConfig(`'${list}' holds something that ${maker} did not make.`);
    }
  }
}

function distinctFamilies(families: readonly EventFamily[]): readonly EventFamily[] {
  const byName = new Map<string, EventFamily>();
  for (const family of families) {
    const other = byName.get(family.name);
    if (other && other !== family)
      throw invalidDeclaration(
        `defineEvents('${family.name}')`,
        'is declared twice. Declare it once and import it where it is used.',
      );
    byName.set(family.name, family);
  }
  return Object.freeze([...byName.values()]);
}

function checkProjections(projections: readonly Projection[]): void {
  const ids = new Set<string>();
  for (const projection of projections) {
    if (ids.has(projection.id))
      throw invalidDeclaration(projection.id, 'is declared twice. Give one of them the next version.');
    ids.add(projection.id);
  }
}

function checkNames(projections: readonly Projection[], commands: readonly Command[]): void {
  const owners = new Map<string, string>();
  for (const projection of projections) {
    for (const name of Object.values(projection.graphql)) {
      const owner = owners.get(name) ?? projection.name;
      if (owner !== projection.name)
        throw invalidDeclaration(
          projection.id,
          `its GraphQL name '${name}' belongs to '${owner}' already. Set 'graphql' names.`,
        );
      owners.set(name, projection.name);
    }
  }
  const seen = new Set<string>();
  for (const command of commands) {
    if (seen.has(command.name)) throw invalidDeclaration(`defineCommand('${command.name}')`, 'is declared twice.');
    seen.add(command.name);
  }
}

function invalidConfig(problem: string): RefoldError<'INVALID_CONFIG'> {
  return new RefoldError('INVALID_CONFIG', problem);
}
