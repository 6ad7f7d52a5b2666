import { hostname } from 'node:os';
import type { ExecutionResult } from 'graphql';
import { type Logger, pino } from 'pino';
import type { Viewer } from './access.ts';
import type { Command } from './commands/define-command.ts';
import type { Config } from './config/define-config.ts';
import { importWithGraphql } from './config/graphql-package.ts';
import { maintainedBy } from './config/maintained.ts';
import { invalidConfig } from './config/option-checks.ts';
import type { HealthServer } from './gateway/http/health-server.ts';
import { createLogger } from './logger.ts';
import { openAdmin, openGateway, openHealth } from './open-servers.ts';
import type { SchemaEvolution } from './runtime/activation/schema-evolution.ts';
import type { ExecuteOptions, ExecuteResult } from './runtime/commands/command-handler.ts';
import type { EventSource } from './runtime/consumers/event-source.ts';
import type { VersionStatus } from './runtime/monitoring/status.ts';
import type { ReactorOperations } from './runtime/reactors/reactor-operations.ts';
import type { Rebuilds } from './runtime/rebuilds/rebuild-requests.ts';
import { startRuntime } from './runtime/runtime.ts';
import { migrateStores } from './runtime/stores/migrate-stores.ts';
import type { Lifecycle } from './runtime/versions/lifecycle.ts';
import type { Versions } from './runtime/versions/versions.ts';
import { type DatabaseServer, startEmbeddedPostgres } from './store/embedded/embedded-postgres.ts';
import type { EventLog } from './store/event-log.ts';
import { migrate } from './store/server/migrate.ts';
import { startTracing } from './tracing.ts';

export interface RefoldOptions {
  /**
   * What this process does: `gateway` serves clients, `worker` maintains read tables, `all` does both.
   * @default 'all'
   */
  readonly role?: 'all' | 'gateway' | 'worker';
  /**
   * The versions and reactors that this process maintains, such as `['cart_summary@2', 'confirmation_mails']`. Other processes must maintain
   * the rest. Not for a `gateway`, which maintains nothing.
   * @default all that the application declares
   */
  readonly only?: readonly string[];
  /**
   * The name of this process in the registry, in the audit log and in `refold status`. Running processes need different names.
   * @default host name and process id, such as `web-1:4711`
   */
  readonly name?: string;
  /**
   * Whether Refold migrates its own tables to the current version at startup. If false, startup fails with an older database.
   * @default true in development and on an embedded server, which has no other operator; else false
   */
  readonly migrate?: boolean;
  /** @default warnings and errors to standard error, one JSON object a line */
  readonly logger?: Logger;
  /** The operation that GraphiQL shows at first. */
  readonly defaultQuery?: string;
}

/** A running application. Created by {@link createRefold}; call `stop` at the end. */
export interface Refold {
  /** The address of the gateway, such as `http://127.0.0.1:4000`. Undefined for a `worker`. */
  readonly url: string | undefined;
  /** Where a `worker` with `runtime.healthPort` answers `/health` and `/metrics`, such as `http://127.0.0.1:9090`. */
  readonly healthUrl: string | undefined;
  /** The URL of the database in use; that of the embedded server if no URL is configured. */
  readonly databaseUrl: string;
  readonly log: EventLog;
  /** The log as a source for your own consumers; see {@link createConsumer}. Stop them before the application. */
  readonly source: EventSource;
  /** The steps of an operator. This process answers accordingly when a step is done; other processes within milliseconds. */
  readonly lifecycle: Lifecycle;
  /** Compares versions: what a version changes for clients, and which fields clients use. */
  readonly schemaEvolution: SchemaEvolution;
  /** The status of each reactor, and the operator's commands for it. */
  readonly reactors: ReactorOperations;
  /** Rebuilds of read tables. */
  readonly rebuilds: Rebuilds;
  /**
   * Executes a query or mutation in this process through the same pipeline as a client's operation. By default it runs as `system`, to
   * which no access rule applies; otherwise as the given viewer.
   */
  graphql(
    source: string,
    variables?: Readonly<Record<string, unknown>>,
    viewer?: Viewer | 'system',
  ): Promise<ExecutionResult>;
  /** Runs a command in this process. @throws InvalidInput, CommandRejected, ConcurrencyConflict */
  execute(command: Command, input: unknown, options?: ExecuteOptions): Promise<ExecuteResult>;
  /** Returns the status of each projection version. Afterwards this process answers with the versions that are active in it. */
  status(): Promise<VersionStatus[]>;
  /** Waits for running operations and batches, closes sockets and releases everything that this process owns. */
  stop(): Promise<void>;
}

/** The data directory of the embedded server, relative to the working directory. Used if no database URL is configured. */
export const embeddedDataDir = '.refold/postgres';

/**
 * Starts an application: database, migrations (in development and on an embedded server), background maintenance of every declared
 * version, gateway.
 *
 * @throws RefoldError that names the problem and what to do: `DATABASE_UNAVAILABLE`, `DATABASE_UNSUITABLE`, `DATABASE_NOT_MIGRATED`,
 * `PROJECTION_CHANGED`, `PROJECTION_REMOVED`, `PORT_IN_USE`. Nothing is left running.
 * @example
 * const refold = await createRefold(defineConfig({ projections: [cartSummaryV1], commands: [addProductItem] }));
 * const answer = await refold.graphql('{ cartSummary(cartId: "c1") { totalAmount } }');
 * await refold.stop();
 */
export function createRefold(config: Config, options: RefoldOptions = {}): Promise<Refold> {
  return createReloadableRefold(config, options);
}

/** A running application whose declarations can be replaced, for `refold dev`. */
export interface ReloadableRefold extends Refold {
  readonly versions: Pick<Versions, 'current' | 'stateOf' | 'onChange'>;
  /**
   * Replaces the declarations; sockets and subscriptions stay open. `database`, `runtime` and `gateway` of the new configuration are not
   * read, because they belong to what stays open.
   *
   * @returns warnings for the operator, as sentences
   * @throws what {@link createRefold} would throw; then the former declarations stay in force
   */
  redeclare(config: Config): Promise<string[]>;
}

export async function createReloadableRefold(config: Config, options: RefoldOptions = {}): Promise<ReloadableRefold> {
  const development = config.development ?? process.env.NODE_ENV !== 'production';
  const logger = options.logger ?? createDefaultLogger(config);
  const role = options.role ?? 'all';
  if (role === 'gateway' && options.only !== undefined)
    throw invalidConfig(
      "'only' names what a process maintains, and a gateway maintains nothing. Leave one of them out.",
    );
  const maintained = maintainedBy(config, options.only);
  const owner = options.name ?? `${hostname()}:${process.pid}`;
  // Loaded on demand: declarations, CLI commands and workers do not need GraphQL, and start in half the time without it.
  const { checkSchema } = await importWithGraphql(() => import('./schema/check-schema.ts'));
  checkSchema(config);
  await startTracing();
  const stops: (() => Promise<void>)[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      for (const next of stops.splice(0).reverse()) await next();
    })();
    return stopping;
  };

  try {
    const server = await databaseServer(config, logger);
    stops.push(() => server.stop());
    if (options.migrate ?? (development || config.database.url === undefined)) await migrate(server.url);
    if (options.migrate ?? development)
      await migrateStores(config, server.url, {
        onOutage: (name, error) => logger.warn({ err: error }, `the read store '${name}' could not be migrated`),
      });
    const { createWorkMetrics } = await import('./runtime/monitoring/work-metrics.ts');
    const metrics = createWorkMetrics(logger);
    const runtime = await startRuntime({
      config,
      url: server.url,
      owner,
      development,
      maintain: role !== 'gateway',
      maintained,
      serves: role !== 'worker',
      logger,
      metrics,
    });
    let health: HealthServer | undefined;
    stops.push(async () => health?.close());
    stops.push(() => runtime.stop());
    if (role === 'worker') health = await openHealth(config, runtime, metrics.registry);
    stops.push(async () => health?.stopping());
    const declared = { config };
    const admin = role === 'worker' ? undefined : await openAdmin(declared, runtime, server.url, owner);
    if (admin) stops.push(() => admin.close());
    const gateway =
      role === 'worker'
        ? undefined
        : await openGateway(declared, runtime, metrics.registry, admin, { ...options, development });
    if (gateway) stops.push(() => gateway.close());
    stops.push(async () => admin?.endSubscriptions());
    return {
      url: gateway?.url,
      healthUrl: health?.url,
      databaseUrl: server.url,
      get log() {
        return runtime.log;
      },
      get source() {
        return runtime.source;
      },
      get lifecycle() {
        return runtime.lifecycle;
      },
      get schemaEvolution() {
        return runtime.schemaEvolution;
      },
      get reactors() {
        return runtime.reactors;
      },
      get rebuilds() {
        return runtime.rebuilds;
      },
      versions: runtime.versions,
      graphql: async (source, variables, viewer) => (gateway ?? neverInWorkers()).execute(source, variables, viewer),
      execute: runtime.execute,
      status: runtime.status,
      async redeclare(next) {
        const { database, runtime: runtimeOptions, gateway: gatewayOptions } = config;
        const served = Object.freeze({ ...next, database, runtime: runtimeOptions, gateway: gatewayOptions });
        checkSchema(served);
        return runtime.redeclare(served, () => {
          declared.config = served;
        });
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** To standard error, because standard output belongs to the program. */
function createDefaultLogger({ projections }: Config): Logger {
  return createLogger({ name: 'refold', level: 'warn', projections, destination: pino.destination(2) });
}

async function databaseServer(config: Config, logger: Logger): Promise<DatabaseServer> {
  const { url } = config.database;
  if (url !== undefined) return { url, stop: async () => {} };
  return startEmbeddedPostgres({ dataDir: embeddedDataDir, say: (line) => logger.info(line) });
}

function neverInWorkers(): never {
  throw new Error("graphql() needs a gateway; this process was started with role 'worker'.");
}
