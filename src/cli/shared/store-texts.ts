import { defaultStore } from '../../projections/projection/projection.ts';
import { type ReadStore, type ReadStores, readEachStore } from '../../store/read-store.ts';
import { integer } from './format.ts';

/** A store that is away must not be taken for one without versions. */
export function storeAwayText(name: string): string {
  return `The read store '${name}' does not respond: its versions are not listed, and their queries get DATABASE_UNAVAILABLE. Start its server, or correct readStores.${name}.url; they catch up by themselves. 'refold rebuild VERSION --store ANOTHER' moves a version that has a copy there.`;
}

/** Says on the error output that a list is not complete: programs read the list. */
export function warnOfStoresAway(away: readonly string[]): void {
  for (const name of away)
    console.error(`refold: The read store '${name}' does not respond: what it has is not listed.`);
}

/** A list of what all stores have. */
export async function listOfStores<T>(
  stores: ReadStores,
  read: (store: ReadStore) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const { found, away } = await readEachStore(stores, read);
  warnOfStoresAway(away);
  return found.flat();
}

interface Placed {
  readonly id: string;
  readonly store: string;
  readonly head: bigint;
  readonly copies: readonly {
    readonly store: string;
    readonly position: bigint;
    /** Whether the version moves to it. */
    readonly arriving: boolean;
    readonly heldReason: string | null;
    readonly error: { readonly message: string } | null;
  }[];
}

/** Where a version of another store than that of the log is, and its copies in others. */
export function storeLines({ id, store, copies, head }: Placed): string[] {
  const here = store === defaultStore ? [] : [`${id} is in the read store '${store}'`];
  return [
    ...here,
    ...copies.map((copy) => {
      const stopped = copy.error ? `; stopped: ${copy.error.message}` : '';
      const held = copy.heldReason ? `; does not take over: ${copy.heldReason}` : '';
      return copy.arriving
        ? `${id} moves to the read store '${copy.store}': at position ${integer(copy.position)} of ${integer(head)}${stopped}${held}`
        : `${id} has a copy in the store '${copy.store}', which a move has left: 'refold retire ${id} --store ${copy.store}' ends its maintenance, 'refold rebuild ${id} --store ${copy.store}' lets it answer again${stopped}`;
    }),
  ];
}
