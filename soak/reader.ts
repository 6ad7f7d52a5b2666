import type { ClientRecord } from './client-record.ts';
import type { Session } from './session.ts';
import { type createRandomOperations, viewers } from './thing-client.ts';

const queries = {
  'balances by owner': `query ($owner: String!) {
    balances(where: { owner: { eq: $owner } }, orderBy: [{ amount: DESC }], first: 10) { totalCount(upTo: 100) nodes { accountId amount movements } }
  }`,
  'aggregate of balances': `query ($owner: String!) {
    balancesAggregate(where: { owner: { ne: $owner } }) { count sum { amount } max { amount } }
    balancesGrouped(by: [owner]) { key { owner } count sum { amount } }
  }`,
  'sales, best first': '{ salesList(orderBy: [{ units: DESC }], first: 20) { nodes { what orders units } } }',
  'newest of the journal':
    '{ journals(orderBy: [{ position: DESC }], first: 20) { nodes { streamId streamPosition position append } } }',
  'things with relations': `query ($label: String) {
    things(where: { label: { eq: $label } }, first: 20) { nodes { thingId owner { name things(first: 5) { nodes { thingId } } } lies { name } under { label } } }
  }`,
} as const;

type Kind = keyof typeof queries;
const kinds = Object.keys(queries) as readonly Kind[];

/** Sends what clients send: lists, single rows, relations, pages, and new documents. */
export function createReader(
  session: Session,
  operations: ReturnType<typeof createRandomOperations>,
  record: ClientRecord,
  random: () => number,
) {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T; // below length

  async function randomDocument(): Promise<void> {
    const operation = await operations.withCursors(operations.next());
    if (!operation) return;
    const viewer = pick(viewers);
    // Its response is compared when the clients are paused.
    await session.ask({
      kind: 'random document',
      ...operation,
      viewer,
      allowed: ['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED'],
      executor: random() < 0.3,
    });
  }

  /** Reads all accounts, page by page: each must appear once, in order. */
  async function pages(): Promise<void> {
    let cursor: string | null = null;
    let last = '';
    for (let pages = 0; pages < 6; pages++) {
      const outcome = await session.ask({
        kind: 'page of balances',
        query: `query ($after: String) {
          balances(orderBy: [{ accountId: ASC }], first: 20, after: $after) { nodes { accountId } pageInfo { hasNextPage endCursor } }
        }`,
        variables: { after: cursor },
      });
      if (outcome.kind !== 'answered') return;
      const page = outcome.data.balances as Page;
      for (const { accountId } of page.nodes) {
        if (accountId <= last) record.isWrong(`a page has ${accountId} after ${last}`);
        last = accountId;
      }
      if (!page.pageInfo.hasNextPage) return;
      cursor = page.pageInfo.endCursor;
    }
  }

  return {
    async step(): Promise<void> {
      const draw = random();
      if (draw < 0.5) return randomDocument();
      if (draw < 0.6) return pages();
      const kind = pick(kinds);
      const variables = { owner: `owner-${Math.floor(random() * 20)}`, label: pick(['north', 'south']) };
      const used = Object.entries(variables).filter(([name]) => queries[kind].includes(`$${name}`));
      await session.ask({ kind, query: queries[kind], variables: Object.fromEntries(used) });
    },
  };
}

interface Page {
  readonly nodes: readonly { readonly accountId: string }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
}
