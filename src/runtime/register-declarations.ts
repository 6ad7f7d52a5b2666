import type { Config } from '../config/define-config.ts';
import type { Maintained } from '../config/maintained.ts';
import { selfFeedingWarnings } from '../reactors/reaction-chains.ts';
import { checkCitus } from '../store/citus/citus-check.ts';
import { withdrawProcess } from '../store/ownership/processes.ts';
import { isOutage } from '../store/postgres/database-errors.ts';
import { errorInStore, type ReadStore, type ReadStores } from '../store/read-store.ts';
import { checkServer } from '../store/server/server-check.ts';
import { checkSessions } from '../store/server/session-check.ts';
import { checkStore } from '../store/server/store-check.ts';
import { connectionLimitWarnings } from './ownership/connection-limit.ts';
import { type DescribedProcess, describeProcess } from './ownership/presence.ts';
import { registerReactors } from './reactors/register-reactors.ts';
import { type RegisterOptions, registerVersions } from './registration/register-versions.ts';
import { checkLoggedNames } from './versions/undeclared-events.ts';

export interface Registration extends Omit<RegisterOptions, 'declarations' | 'store' | 'described'> {
  readonly stores: ReadStores;
  /** The process that starts, and what it maintains of the declarations. */
  readonly process: DescribedProcess;
  readonly maintained: Maintained;
}

interface Registered {
  readonly warnings: readonly string[];
  readonly late: ReadonlySet<ReadStore>;
}

/**
 * Compares the declarations with the registries, and registers what is new.
 *
 * @returns warnings for the operator, as sentences, and the stores apart from the log that do not respond: nothing is registered there yet.
 */
export async function registerDeclarations(config: Config, registration: Registration): Promise<Registered> {
  const { process, maintained, ...options } = registration;
  const { stores } = options;
  try {
    return await registerInStores(config, { ...options, described: describeProcess(process, config, maintained) });
  } catch (error) {
    // A process that does not start must not count as running. Where it was not announced, this changes nothing.
    if (!isOutage(error))
      for (const { db } of [stores.home, ...stores.apart]) await withdrawProcess(db, process.id).catch(() => {});
    throw error;
  }
}

async function registerInStores(
  config: Config,
  { stores, ...registration }: Omit<Registration, 'process' | 'maintained'> & Pick<RegisterOptions, 'described'>,
): Promise<Registered> {
  const { db, actor } = registration;
  const undeclared = await checkLoggedNames(db, config.families);
  const warnings = [
    ...(undeclared === undefined ? [] : [undeclared]),
    ...(await registerVersions({ ...registration, declarations: config })),
    ...selfFeedingWarnings(config.reactors),
    ...(await connectionLimitWarnings(db, config.database)),
    ...(await registerReactors(db, config.reactors, actor)),
  ];
  const late = new Set<ReadStore>();
  for (const store of stores.apart) {
    try {
      warnings.push(...(await registerInStore(store, config, registration)));
    } catch (error) {
      if (!isOutage(error)) throw errorInStore(store.name, error);
      late.add(store);
      warnings.push(
        `The read store '${store.name}' does not respond. Its versions are registered when it does; until then nothing answers for them.`,
      );
    }
  }
  return { warnings, late };
}

/** Throws what the checks of a store say: it may lack the tables in which a read has failed. Otherwise, throws the error of that read. */
export async function explainStores({ apart }: ReadStores, readSchema: string, error: unknown): Promise<never> {
  for (const { name, db } of apart) {
    await checkServer(db, readSchema).catch((found: unknown) => {
      if (!isOutage(found)) throw errorInStore(name, found);
    });
  }
  throw error;
}

/** Registers the versions of a store apart from the log. @returns warnings for the operator */
export async function registerInStore(
  { name, db }: ReadStore,
  config: Config,
  registration: Omit<RegisterOptions, 'db' | 'declarations' | 'store'>,
): Promise<string[]> {
  const { readSchema, notifications } = config.database;
  await checkServer(db, readSchema);
  await checkStore(db);
  await checkCitus(db);
  await checkSessions(db, { sessions: notifications });
  const { maxConnections } = config.readStores[name] ?? config.database;
  return [
    ...(await registerVersions({ ...registration, db, store: name, declarations: config })),
    ...(await connectionLimitWarnings(db, { maxConnections, notifications })),
  ];
}
