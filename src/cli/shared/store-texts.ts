import { defaultStore } from '../../projections/projection/projection.ts';

/** A store that is away must not be taken for one without versions. */
export function storeAwayText(name: string): string {
  return `The read store '${name}' does not respond: its versions are not listed, and their queries get DATABASE_UNAVAILABLE. Start its server, or correct readStores.${name}.url; they catch up by themselves. Without its versions, processes answer from older ones that are active in other stores.`;
}

/** Says on the error output that a list is not complete: programs read the list. */
export function warnOfStoresAway(away: readonly string[]): void {
  for (const name of away)
    console.error(`refold: The read store '${name}' does not respond: what it has is not listed.`);
}

/** Where a version of another store than that of the log is. */
export function storeLines({ id, store }: { readonly id: string; readonly store: string }): string[] {
  return store === defaultStore ? [] : [`${id} is in the read store '${store}'`];
}
