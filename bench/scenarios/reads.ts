import { buildByRefold } from '../build.ts';
import { createCartLog } from '../cart-log.ts';
import { cartOfCustomer, cartSummary, customerTotal } from '../carts.ts';
import { check } from '../check.ts';
import { type Load, requestsPerSecond } from '../http/load.ts';
import { type ServerProcess, startServerProcess } from '../http/server-process.ts';
import { openClient } from '../open-client.ts';
import { isInstalled } from '../peers/installed.ts';
import { inTurn } from '../rounds.ts';
import type { BenchContext, Result, Scenario, Target } from '../scenario.ts';
import type { BenchServer } from '../server.ts';

/** One read in the API of each contestant, and the path to its rows in the response. */
interface Read {
  readonly values: readonly string[];
  readonly expected: (value: string) => string;
  readonly refold: string;
  readonly postgraphile: string;
  readonly limitPath: string;
  /** Whether the carts link to their customers. */
  readonly related?: boolean;
}

const byIdRead: Read = {
  values: Array.from({ length: 997 }, (_, index) => `cart-${index * 3}`),
  expected: (value) => `"${value}"`,
  refold: 'query ($value: ID!) { cartSummary(cartId: $value) { cartId customer items total } }',
  postgraphile: 'query ($value: String!) { cartSummaryV1ByCartId(cartId: $value) { cartId customer items total } }',
  limitPath: '/by-id',
};

const listRead: Read = {
  values: Array.from({ length: 100 }, (_, index) => `customer-${index}`),
  expected: (value) => `"${value}"`,
  refold: `query ($value: String!) {
    cartSummaries(where: { customer: { eq: $value } }, orderBy: [{ total: DESC }], first: 20) {
      edges { node { cartId customer items total } }
    }
  }`,
  postgraphile: `query ($value: String!) {
    allCartSummaryV1S(condition: { customer: $value }, orderBy: [TOTAL_DESC], first: 20) {
      edges { node { cartId customer items total } }
    }
  }`,
  limitPath: '/list',
};

const relatedRead: Read = {
  values: listRead.values,
  expected: (value) => `"${value}"`,
  refold: `query ($value: ID!) {
    cartOfCustomers(where: { customer: { eq: $value } }, orderBy: [{ total: DESC }], first: 20) {
      nodes { cartId total customerTotal { customer carts } }
    }
  }`,
  postgraphile: `query ($value: String!) {
    allCartOfCustomerV1S(condition: { customer: $value }, orderBy: [TOTAL_DESC], first: 20) {
      nodes { cartId total customerTotal: customerTotalV1ByCustomer { customer carts } }
    }
  }`,
  limitPath: '/related',
  related: true,
};

const aggregateRead: Read = {
  values: listRead.values,
  expected: () => '40', // carts of a customer
  refold: 'query ($value: String!) { cartSummariesAggregate(where: { customer: { eq: $value } }) { count } }',
  postgraphile: 'query ($value: String!) { allCartSummaryV1S(condition: { customer: $value }) { totalCount } }',
  limitPath: '/aggregate',
};

export const reads: readonly Scenario[] = [
  reading('by-id', byIdRead, 32, { target: { toPeer: 3, toLimit: 0.9 } }),
  reading('list-of-20', listRead, 32, { target: { toPeer: 2, toLimit: 0.7 } }),
  reading('list-with-relation', relatedRead, 32, { target: { toPeer: 2.5, toLimit: 0.7 } }),
  reading('aggregate', aggregateRead, 32, { target: { toPeer: 1.5 } }),
  reading('by-id-x1', byIdRead, 1, { fullOnly: true }),
  reading('by-id-x128', byIdRead, 128, { fullOnly: true }),
  reading('list-of-20-x1', listRead, 1, { fullOnly: true }),
  reading('list-of-20-x128', listRead, 128, { fullOnly: true }),
  reading('list-with-relation-x1', relatedRead, 1, { fullOnly: true }),
  reading('list-with-relation-x128', relatedRead, 128, { fullOnly: true }),
  reading('aggregate-x1', aggregateRead, 1, { fullOnly: true }),
  reading('aggregate-x128', aggregateRead, 128, { fullOnly: true }),
];

function reading(
  name: string,
  read: Read,
  connections: number,
  { target = {}, fullOnly = false }: { readonly target?: Target; readonly fullOnly?: boolean } = {},
): Scenario {
  return { name, fullOnly, run: (context) => measure(context, name, read, connections, target) };
}

async function measure(
  { server, quick, rounds }: BenchContext,
  name: string,
  read: Read,
  connections: number,
  target: Target,
) {
  const url = await readModels(server, read.related ?? false);
  await using refold = await startServerProcess('refold-server.ts', url, ...(read.related ? ['related'] : []));
  await using limit = await startServerProcess('json-server.ts', url);
  await using peer = isInstalled('postgraphile') ? await startServerProcess('postgraphile-server.ts', url) : undefined;
  const graphql = (query: string) =>
    read.values.map((value) => ({
      path: '/graphql',
      body: JSON.stringify({ query, variables: { value } }),
      expected: read.expected(value),
    }));
  const json = read.values.map((value) => ({
    path: read.limitPath,
    body: JSON.stringify({ value }),
    expected: read.expected(value),
  }));
  const turn = (process: ServerProcess, requests: Load['requests']) => async () =>
    requestsPerSecond({ url: process.url, requests, connections, milliseconds: quick ? 300 : 5000 });

  const requests = { refold: graphql(read.refold), limit: json, peer: graphql(read.postgraphile) };
  const expected = JSON.stringify(await rowsOf(limit, requests.limit));
  for (const [contestant, asked] of [
    [refold, requests.refold],
    [peer, requests.peer],
  ] as const) {
    if (!contestant) continue;
    const found = JSON.stringify(await rowsOf(contestant, asked));
    check(found === expected, () => `${contestant.url} returns ${found.slice(0, 300)}, not ${expected.slice(0, 300)}`);
  }

  const figures = await inTurn(rounds, {
    refold: turn(refold, requests.refold),
    limit: turn(limit, requests.limit),
    peer: peer && turn(peer, requests.peer),
  });
  const result: Result = {
    scenario: name,
    unit: 'requests/s',
    better: 'more',
    refold: figures.refold ?? [],
    peer: figures.peer,
    peerName: 'PostGraphile 5',
    limit: figures.limit,
    limitName: 'node:http + pg',
    target,
  };
  return [result];
}

// Scenarios share them, because nothing is written to them.
const built = new WeakMap<BenchServer, Map<boolean, Promise<string>>>();

function readModels(server: BenchServer, related: boolean): Promise<string> {
  const known = built.get(server) ?? new Map<boolean, Promise<string>>();
  built.set(server, known);
  const url = known.get(related) ?? buildReadModels(server, related);
  known.set(related, url);
  return url;
}

async function buildReadModels(server: BenchServer, related: boolean): Promise<string> {
  const { url } = await createCartLog(server, 'bench_reads', 60_000, 20_000);
  await buildByRefold(url, related ? [cartOfCustomer, customerTotal] : [cartSummary]);
  if (related) await tellPostGraphile(url);
  return url;
}

/** Declares the relation, which has no foreign key. */
async function tellPostGraphile(url: string): Promise<void> {
  const client = await openClient(url);
  await client.query(
    `comment on table read_models.cart_of_customer_v1 is '@foreignKey (customer) references customer_total_v1 (customer)'`,
  );
  await client.end();
}

type Cart = Readonly<Record<'cartId' | 'customer' | 'items' | 'total' | 'customerTotal', unknown>>;

/** The rows of the first responses, without each contestant's envelope. */
async function rowsOf(process: ServerProcess, requests: Load['requests']): Promise<Cart[]> {
  const found: Cart[] = [];
  for (const { path, body } of requests.slice(0, 20)) {
    const response = await fetch(process.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    collectCarts(await response.json(), found);
  }
  return found.map(({ cartId, customer, items, total, customerTotal }) => ({
    cartId,
    customer,
    items,
    total: Number(total),
    customerTotal,
  }));
}

function collectCarts(value: unknown, into: Cart[]): void {
  if (typeof value !== 'object' || value === null) return;
  if ('cartId' in value)
    into.push(value as Cart); // the request to each contestant selects the same fields
  else for (const part of Object.values(value)) collectCarts(part, into);
}
