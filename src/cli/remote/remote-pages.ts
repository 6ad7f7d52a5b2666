/** A page of the admin API. */
export interface RemotePage<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** The read stores that do not respond, if the query selects them. */
  readonly storesAway?: readonly string[];
}

export interface RemoteItems<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
  readonly storesAway: readonly string[];
}

/** Reads pages until they end, or until there are so many items. */
export async function itemsOf<T>(
  read: (after: string | null) => Promise<RemotePage<T>>,
  most: number,
): Promise<RemoteItems<T>> {
  const items: T[] = [];
  const away = new Set<string>();
  const found = (hasMore: boolean) => ({ items: items.slice(0, most), hasMore, storesAway: [...away] });
  for (let after: string | null = null; ; ) {
    const page: RemotePage<T> = await read(after);
    items.push(...page.items);
    for (const name of page.storesAway ?? []) away.add(name);
    if (page.next === null) return found(items.length > most);
    if (items.length >= most) return found(true);
    after = page.next;
  }
}
