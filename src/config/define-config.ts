import type { Authenticator } from '../access.ts';
import type { Command } from '../commands/define-command.ts';
import type { Import } from '../events/define-import.ts';
import type { EventFamily } from '../events/event-family.ts';
import { defaultStore, type Projection } from '../projections/projection/projection.ts';
import type { Reactor } from '../reactors/reactor.ts';
import { checkOptionKinds } from './all-options.ts';
import { shareConnections } from './connections.ts';
import { type CheckedDatabase, checkDatabase, type DatabaseOptions } from './database-options.ts';
import { checkDeclarations, type Declarations, distinctFamilies } from './declarations.ts';
import { type CheckedGateway, checkGateway, type GatewayOptions } from './gateway-options.ts';
import { invalidConfig, refuseUnknown } from './option-checks.ts';
import {
  type CheckedReadStores,
  checkReadStores,
  checkStoreConnections,
  placedIn,
  type ReadStoreOptions,
} from './read-store-options.ts';
import { type CheckedRuntime, checkRuntime, type RuntimeOptions } from './runtime-options.ts';

export interface ConfigOptions extends Declarations {
  readonly database?: DatabaseOptions;
  /**
   * Further databases of read models, by name. A projection names its store with `store`. The log, reactors and inline versions stay in the
   * database of `database`, which is the store `default`. Each has a `url`. Optional are `readUrl` and `maxReadLag` for a replica of it,
   * `maxConnections`, and `placement` for a Citus cluster.
   * @default none: one database holds all
   */
  readonly readStores?: Readonly<Record<string, ReadStoreOptions>>;
  /**
   * The read store of projections that name none: it builds their new versions. Versions that exist stay where they are. Inline
   * projections stay with the log.
   * @default 'default', the database of the log
   */
  readonly store?: string;
  readonly runtime?: RuntimeOptions;
  readonly gateway?: GatewayOptions;
  /** Additional types and fields for the generated schema, created with {@link extendSchema}. */
  readonly schema?: { readonly kind: 'schema-extension' };
  /**
   * Development mode: freezes rows and events, rebuilds versions whose code changed, serves GraphiQL. @default `NODE_ENV` is not
   * 'production'
   */
  readonly development?: boolean;
}

/** A checked, complete and frozen configuration. Created by {@link defineConfig}. */
export interface Config {
  readonly kind: 'config';
  readonly families: readonly EventFamily[];
  readonly projections: readonly Projection[];
  readonly commands: readonly Command[];
  readonly reactors: readonly Reactor[];
  readonly imports: readonly Import[];
  readonly database: CheckedDatabase;
  readonly readStores: CheckedReadStores;
  /** The store of projections that name none. */
  readonly store: string;
  readonly gateway: CheckedGateway;
  readonly runtime: CheckedRuntime;
  readonly auth: Authenticator | undefined;
  readonly schema: { readonly kind: 'schema-extension' } | undefined;
  readonly development: boolean | undefined;
  /** The options as they were given. */
  readonly given: ConfigOptions;
}

/**
 * Declares an application: its projections, its commands and how it runs. Everything is checked here, before anything connects.
 *
 * @throws RefoldError `INVALID_CONFIG` for an unknown option or an invalid value, `INVALID_DECLARATION` for declarations that conflict.
 * @example
 * export default defineConfig({ projections: [cartSummaryV1, cartSummaryV2], commands: [addProductItem] });
 */
export function defineConfig(options: ConfigOptions): Config {
  refuseUnknown('config', options, [
    'events',
    'projections',
    'commands',
    'reactors',
    'imports',
    'database',
    'readStores',
    'store',
    'runtime',
    'gateway',
    'auth',
    'schema',
    'development',
  ]);
  checkOptionKinds(options);
  checkDeclarations(options);
  const { events = [], commands = [], reactors = [], imports = [] } = options;
  const projections = placedIn(options.store, options.projections ?? []);
  const families = distinctFamilies([
    ...events,
    ...projections.flatMap((projection) => projection.families),
    ...commands.flatMap((command) => command.families),
    ...reactors.flatMap((reactor) => reactor.families),
  ]);
  if (options.schema !== undefined && options.schema?.kind !== 'schema-extension')
    throw invalidConfig("'schema' holds something that extendSchema did not make.");
  const { database = {}, runtime = {}, gateway = {} } = options;
  const checkedDatabase = checkDatabase(database);
  const checkedGateway = checkGateway(gateway);
  shareConnections({ database: checkedDatabase, projections, gateway: checkedGateway });
  const checkedStores = checkReadStores(options.readStores ?? {}, options.store, projections);
  checkStoreConnections(checkedStores, checkedGateway);
  return Object.freeze({
    kind: 'config',
    families,
    projections: Object.freeze([...projections]),
    commands: Object.freeze([...commands]),
    reactors: Object.freeze([...reactors]),
    imports: Object.freeze([...imports]),
    database: checkedDatabase,
    readStores: checkedStores,
    store: options.store ?? defaultStore,
    runtime: checkRuntime(runtime, database),
    gateway: checkedGateway,
    auth: options.auth,
    schema: options.schema,
    development: options.development,
    given: Object.freeze({ ...options }),
  } satisfies Config);
}
