import type { Config } from '../../config/define-config.ts';
import type { CheckedReadStore } from '../../config/read-store-options.ts';
import { migrateStore } from '../../store/citus/place-store.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { errorInStore } from '../../store/read-store.ts';
import type { MigrateOptions } from '../../store/server/migrate.ts';
import { checkUnmigratedStore } from '../../store/server/store-check.ts';
import { openOperatorStores } from './operator-stores.ts';

export interface MigrateStoresOptions extends MigrateOptions {
  /** Called for a store that does not respond, instead of an error, so that it does not keep the others from being migrated. */
  readonly onOutage?: (name: string, error: unknown) => void;
}

/**
 * Migrates the read stores apart from the log, whose database is migrated. Returns the applied migrations of each store.
 *
 * @throws RefoldError with the store's name: `DATABASE_UNSUITABLE`, before it is migrated, if it is the database of a log or of another store
 */
export async function migrateStores(
  config: Config,
  url: string,
  { onOutage, ...options }: MigrateStoresOptions = {},
): Promise<Readonly<Record<string, readonly string[]>>> {
  const databases = openOperatorStores(config, url, { applicationName: 'refold-migrate', maxConnections: 2 });
  const applied: Record<string, readonly string[]> = {};
  try {
    for (const { name, db } of databases.stores.apart) {
      try {
        await checkUnmigratedStore(db);
        applied[name] = await migrateStore(config.readStores[name] as CheckedReadStore, options); // each is of the configuration
      } catch (error) {
        if (!onOutage || !isOutage(error)) throw errorInStore(name, error);
        onOutage(name, error);
      }
    }
    return applied;
  } finally {
    await databases.close();
  }
}
