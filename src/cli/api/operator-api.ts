import { warnOfStoresAway } from '../shared/store-texts.ts';

/** The admin API: that of a running gateway, or that of this process, over the application's database. */
export interface OperatorApi {
  /** @throws RefoldError with the code and the message of the first error */
  query<T>(document: string, variables?: object): Promise<T>;
  /** The messages of a subscription, until it ends. @throws RefoldError like {@link query} */
  subscribe<T>(document: string, variables?: object): AsyncGenerator<T>;
  /** The reason that the audit log records if none is given. Undefined if one must be given. */
  readonly usualReason: string | undefined;
}

interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** The read stores that do not respond, if the query selects them. */
  readonly storesAway?: readonly string[];
}

export interface Items<T, P = unknown> {
  readonly items: readonly T[];
  /** Whether there are more than were asked for. */
  readonly hasMore: boolean;
  /** The last page, with the other fields that the query selects. */
  readonly page: P;
}

/**
 * Reads pages until they end, or until there are so many items. Warns of read stores that do not respond.
 *
 * @param document a query with the variable `$after`, whose root field is the page
 */
export async function itemsOf<T, P = unknown>(
  api: OperatorApi,
  document: string,
  variables: object = {},
  most = Number.POSITIVE_INFINITY,
): Promise<Items<T, P>> {
  const items: T[] = [];
  for (let after: string | null = null; ; ) {
    const answer: Record<string, Page<T>> = await api.query(document, { ...variables, after });
    const [page] = Object.values(answer);
    if (!page) throw new TypeError('The query selects no page.'); // each does
    items.push(...page.items);
    after = page.next;
    if (after !== null && items.length < most) continue;
    warnOfStoresAway(page.storesAway ?? []);
    return { items: items.slice(0, most), hasMore: after !== null || items.length > most, page: page as unknown as P }; // as the query selects it
  }
}
