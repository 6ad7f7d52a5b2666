import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { ReadStore, ReadStores } from '../../store/read-store.ts';

/** Returns the store named on the command line. @throws RefoldError `INVALID_CONFIG` */
export function storeNamed({ home, apart }: ReadStores, name: string): ReadStore {
  const stores = [home, ...apart];
  const found = stores.find((store) => store.name === name);
  if (found) return found;
  const known = stores.map((store) => store.name);
  throw new RefoldError('INVALID_CONFIG', `There is no read store '${name}' in 'readStores'.${closest(name, known)}`);
}
