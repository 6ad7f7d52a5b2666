import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import { distributedProblem } from '../projections/projection/distributed-problem.ts';
import { defaultStore, type Projection } from '../projections/projection/projection.ts';
import { adminConnections, least } from './connections.ts';
import { checkDatabaseUrl, checkReplica, readLagRule } from './database-options.ts';
import { checkNumbers, invalidConfig, type NumberRule, refuseUnknown } from './option-checks.ts';

/** A database of read models beside the one of the log. */
export interface ReadStoreOptions {
  /** The connection URL, as in {@link DatabaseOptions.url}. Another PostgreSQL server, or another database of the same one. */
  readonly url: string;
  /**
   * The URL of a streaming replica of the store, as in {@link DatabaseOptions.readUrl}. GraphQL queries of its read models are served from the
   * replica while it is close enough to the store and has the position that they require. Not with `placement`.
   * @default none: the database at `url` serves all queries
   */
  readonly readUrl?: string;
  /** Maximum lag of the replica for reads from it, in milliseconds. @default 1000 */
  readonly maxReadLag?: number;
  /**
   * Maximum number of connections of this process to the store, in total: half for clients' reads, half for batches, one to own what the process
   * maintains, one to listen, and two for the admin page if it is served. To a replica the
   * process opens at most the share of reads and one more. The minimum is 6, or 8 with the admin page.
   * @default 26
   */
  readonly maxConnections?: number;
  /**
   * For a Citus cluster, whose coordinator `url` names: where the cluster keeps the store's tables. `schema` keeps all of them together on one
   * worker, so every guarantee is that of plain PostgreSQL. `partition` does the same, but distributes the rows of projections with several
   * `partitions` over the workers, by partition: for a read model that is too large for one worker.
   * @default none: the store is plain PostgreSQL, and a Citus cluster is refused
   */
  readonly placement?: Placement;
}

/** Where a Citus cluster keeps the tables of a read store. */
export type Placement = 'schema' | 'partition';

/** The options, checked and complete. */
export type CheckedReadStore = Required<Omit<ReadStoreOptions, 'placement' | 'readUrl'>> & {
  readonly placement?: Placement;
  readonly readUrl?: string;
};

export type CheckedReadStores = Readonly<Record<string, CheckedReadStore>>;

const numbers = {
  maxConnections: { default: 26, min: 6, max: 1000 },
  maxReadLag: readLagRule,
} as const satisfies Record<string, NumberRule>;

const placements: readonly Placement[] = ['schema', 'partition'];

/** Whether the rows of a version are distributed over the workers of a Citus cluster, by partition. */
export function isDistributedIn(
  stores: CheckedReadStores,
  { store, partitions }: Pick<Projection, 'store' | 'partitions'>,
): boolean {
  return stores[store]?.placement === 'partition' && partitions > 1;
}

/** The projections with the store of the configuration, where they name none. */
export function placedIn(store: string | undefined, projections: readonly Projection[]): readonly Projection[] {
  if (store === undefined || store === defaultStore) return projections;
  const goes = ({ namesStore, mode }: Projection) => !namesStore && mode !== 'inline';
  return projections.map((projection) => (goes(projection) ? Object.freeze({ ...projection, store }) : projection));
}

/** Checks the stores, and that versions in several of them can be answered. @throws RefoldError `INVALID_CONFIG`, `INVALID_DECLARATION` */
export function checkReadStores(
  stores: Readonly<Record<string, ReadStoreOptions>>,
  store: string | undefined,
  projections: readonly Projection[],
): CheckedReadStores {
  if (typeof stores !== 'object' || stores === null)
    throw invalidConfig(`readStores is an object of stores by name, found ${String(stores)}.`);
  const checked = Object.fromEntries(Object.entries(stores).map(([name, store]) => [name, checkStore(name, store)]));
  if (store !== undefined && store !== defaultStore && !Object.hasOwn(stores, store))
    throw invalidConfig(
      `'store' is '${store}', which is not among 'readStores'.${closest(store, Object.keys(stores))}`,
    );
  for (const projection of projections) {
    checkKnown(projection, Object.keys(stores));
    checkComparisons(projection, projections);
    checkTargets(projection, projections);
    if (stores[projection.store]?.placement === 'partition') checkDistributed(projection, projections);
  }
  return Object.freeze(checked);
}

function checkStore(name: string, store: ReadStoreOptions): CheckedReadStore {
  const subject = `readStores.${name}`;
  if (name === defaultStore)
    throw invalidConfig(
      `${subject} is the database of the log, which 'database' configures. Give the store another name.`,
    );
  if (!/^[a-z][a-z0-9_-]{0,30}$/.test(name))
    throw invalidConfig(
      `readStores has a store '${name}'. Name it in lower case, with at most 31 letters, digits, _ and -.`,
    );
  if (typeof store !== 'object' || store === null)
    throw invalidConfig(`${subject} is an object such as { url: 'postgres://…' }, found ${String(store)}.`);
  refuseUnknown(subject, store, ['url', 'readUrl', 'placement', ...Object.keys(numbers)]);
  if (typeof store.url !== 'string') throw invalidConfig(`${subject}.url is missing: the URL of the store's database.`);
  checkDatabaseUrl(`${subject}.url`, store.url);
  checkReplica(subject, store);
  const { placement, readUrl } = store;
  if (placement !== undefined && !placements.includes(placement))
    throw invalidConfig(
      `${subject}.placement is 'schema' or 'partition', for a Citus cluster, or left out for plain PostgreSQL, found '${String(placement)}'.`,
    );
  if (placement !== undefined && readUrl !== undefined)
    throw invalidConfig(
      `${subject}.readUrl is a replica, which can't be used with 'placement': the rows are on a worker of the cluster, and a replica of the coordinator ` +
        'does not show how far a replica of the worker is. Leave readUrl out.',
    );
  const numbersOfStore = checkNumbers(subject, store, numbers);
  return Object.freeze({
    ...{ url: store.url, ...numbersOfStore },
    ...(readUrl === undefined ? {} : { readUrl }),
    ...(placement === undefined ? {} : { placement }),
  });
}

function checkKnown({ id, store }: Projection, stores: readonly string[]): void {
  if (store === defaultStore || stores.includes(store)) return;
  throw invalidDeclaration(
    id,
    `its store '${store}' is not among 'readStores' of the configuration.${closest(store, stores)}`,
  );
}

/** The rows of two versions are compared in one snapshot of one database. */
function checkComparisons({ id, name, version, store, activation }: Projection, all: readonly Projection[]): void {
  if (activation.comparedColumns === null) return;
  const lower = all.findLast((other) => other.name === name && other.version < version && other.store !== store);
  if (!lower) return;
  throw invalidDeclaration(
    id,
    `activation.compareWith compares it with the version that answers, in one snapshot. ${lower.id} is in the store '${lower.store}', and this version in '${store}'. Use 'verify' instead, which compares it with the log.`,
  );
}

/** Until both are active, a relation may lead to another store. Without any target in its own store it always would. */
function checkTargets({ id, store, relations }: Projection, all: readonly Projection[]): void {
  for (const [name, { target }] of Object.entries(relations)) {
    const targets = all.filter((other) => other.name === target);
    if (targets.length === 0 || targets.some((other) => other.store === store)) continue;
    throw invalidDeclaration(
      id,
      `relation '${name}' leads to '${target}', of which no version is in the same store '${store}'. Rows of two stores are never of one snapshot, and can't be joined. Declare both in one store.`,
    );
  }
}

/** @throws RefoldError `INVALID_DECLARATION` */
function checkDistributed(projection: Projection, all: readonly Projection[]): void {
  const problem = distributedProblem(projection, all);
  if (problem !== undefined) throw invalidDeclaration(projection.id, problem);
}

/** Checks that a process has enough connections to each store. @throws RefoldError `INVALID_CONFIG` */
export function checkStoreConnections(stores: CheckedReadStores, gateway: AdminUse): void {
  for (const [name, store] of Object.entries(stores)) {
    const needed = alone(gateway) + 2 * least;
    if (store.maxConnections >= needed) continue;
    throw invalidConfig(
      `readStores.${name}.maxConnections is ${store.maxConnections}; this application needs ${needed} in a process: ` +
        `${least} for batches, ${least} for reads, 1 for ownership, 1 for notifications, ${adminConnections} for the admin page.`,
    );
  }
}

interface AdminUse {
  readonly admin: object | undefined;
}

/** One that owns, one that listens, and those of the admin page. */
function alone({ admin }: AdminUse): number {
  return 2 + (admin ? adminConnections : 0);
}

/** How the connections of a process to a store are divided, apart from those with a purpose of their own. */
export function shareStoreConnections(
  { maxConnections }: CheckedReadStore,
  gateway: AdminUse,
): { readonly work: number; readonly reads: number } {
  const shared = maxConnections - alone(gateway);
  const reads = Math.max(least, Math.floor(shared / 2));
  return { work: shared - reads, reads };
}
