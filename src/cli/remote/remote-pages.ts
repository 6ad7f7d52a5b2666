/** A page of the admin API. */
export interface RemotePage<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Reads pages until they end, or until there are so many items. */
export async function itemsOf<T>(
  read: (after: string | null) => Promise<RemotePage<T>>,
  most: number,
): Promise<{ readonly items: readonly T[]; readonly hasMore: boolean }> {
  const items: T[] = [];
  for (let after: string | null = null; ; ) {
    const page: RemotePage<T> = await read(after);
    items.push(...page.items);
    if (page.next === null) return { items: items.slice(0, most), hasMore: items.length > most };
    if (items.length >= most) return { items: items.slice(0, most), hasMore: true };
    after = page.next;
  }
}
