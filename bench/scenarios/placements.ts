import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { migrate } from '../../src/store/server/migrate.ts';
import { type CitusCluster, startCitusCluster } from '../../test/support/citus-cluster.ts';
import { citusLine, findCitus } from '../../test/support/citus-engine.ts';
import { type PostgresCluster, startPostgresCluster } from '../../test/support/postgres-cluster.ts';
import { createCartLog } from '../cart-log.ts';
import { requestsPerSecond } from '../http/load.ts';
import { type ServerProcess, startServerProcess } from '../http/server-process.ts';
import { distributedPartitions, type Placement, storedApart } from '../many/stored-apart.ts';
import { openClient } from '../open-client.ts';
import type { BenchContext, Result, Scenario } from '../scenario.ts';

const events = 50_000;
const streams = 2000;

const measures = ['batches', 'by-id', 'list-of-20'] as const;
const units = { batches: 'events/s', 'by-id': 'requests/s', 'list-of-20': 'requests/s' } as const;

type Figures = { readonly [Measure in (typeof measures)[number]]: number };

const contestants = ['schema', 'partition', 'plain'] as const;
type Contestant = (typeof contestants)[number];

/**
 * Read models in a Citus cluster, all on one worker or distributed by partition, compared with the same PostgreSQL without Citus. All servers are on this machine, and none waits
 * for its disk at a commit: what the way through the coordinator costs is seen, and not what a network or a disk adds.
 */
export const placements: Scenario = {
  name: 'placements',
  fullOnly: true,
  async run(context) {
    const { binaries, missing } = findCitus();
    if (missing !== undefined) {
      console.log(citusLine(findCitus()));
      return [];
    }
    const plain = await startPostgresCluster({ binaries });
    const cluster = await startCitusCluster();
    try {
      const { url } = await createCartLog(context.server, 'bench_placements', events, streams);
      const figures: Readonly<Record<Contestant, Figures[]>> = { schema: [], partition: [], plain: [] };
      for (let round = 0; round < context.rounds; round++) {
        for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
          const measured =
            contestant === 'plain'
              ? measurePlain(context, url, plain)
              : measureCitus(context, url, cluster, contestant);
          figures[contestant].push(await measured);
        }
      }
      return (['schema', 'partition'] as const).flatMap((placement) =>
        measures.map((measure): Result => {
          const of = (all: readonly Figures[]) => all.map((one) => one[measure]);
          return {
            scenario: `placement-${placement}-${measure}`,
            unit: units[measure],
            better: 'more',
            refold: of(figures[placement]),
            limit: of(figures.plain),
            limitName: 'plain PostgreSQL 15',
            target: {},
          };
        }),
      );
    } finally {
      await Promise.all([plain.stop(), cluster.stop()]);
    }
  },
};

async function measureCitus(
  context: BenchContext,
  log: string,
  cluster: CitusCluster,
  placement: Placement,
): Promise<Figures> {
  const url = await cluster.createStore(placement);
  return measure(context, log, url, placement);
}

let databases = 0;

async function measurePlain(context: BenchContext, log: string, server: PostgresCluster): Promise<Figures> {
  const admin = await openClient(server.url);
  const name = `bench_plain_${++databases}`;
  await admin.query(`create database ${name}`);
  await admin.end();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  await migrate(url.href);
  return measure(context, log, url.href);
}

async function measure({ quick }: BenchContext, log: string, store: string, placement?: Placement): Promise<Figures> {
  const placed = placement === undefined ? [] : [placement];
  await using process = await startServerProcess('read-store-server.ts', log, store, ...placed);
  const client = await openClient(store);
  try {
    const batches = await batchRate(client, placement === 'partition' ? distributedPartitions : 1);
    await answersRows(process);
    const milliseconds = quick ? 2000 : 10_000;
    const byId = await requestsPerSecond({ ...load(process, milliseconds), requests: readsById });
    const list = await requestsPerSecond({ ...load(process, milliseconds), requests: lists });
    return { batches, 'by-id': byId, 'list-of-20': list };
  } finally {
    await client.end();
  }
}

/**
 * Events in a second, from the registration of the three versions to their last batch. Each partition reads all events. A build writes its rows
 * in one or two batches, so their checkpoints alone tell no rate.
 */
async function batchRate(client: pg.Client, partitions: number): Promise<number> {
  const versions = storedApart(true).length;
  const checkpoints = async () => {
    const { rows } = await client.query<{ checkpoint: string }>('select checkpoint from refold.processors');
    return rows.map(({ checkpoint }) => Number(checkpoint));
  };
  while ((await checkpoints()).length < versions * partitions) await pause(5);
  const start = performance.now();
  while ((await checkpoints()).some((checkpoint) => checkpoint < events)) await pause(5);
  return (versions * events) / ((performance.now() - start) / 1000);
}

/** A version answers when it is active, a moment after its last batch. */
async function answersRows({ url }: ServerProcess): Promise<void> {
  for (const { path, body, expected } of [readsById[0], lists[0]].flatMap((read) => read ?? [])) {
    const ask = async () => {
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      return response.text();
    };
    while (!(await ask()).includes(expected)) await pause(20);
  }
}

function load({ url }: ServerProcess, milliseconds: number) {
  return { url, connections: 32, milliseconds };
}

const readsById = Array.from({ length: 100 }, (_, index) => ({
  path: '/graphql',
  body: JSON.stringify({
    query: 'query ($id: ID!) { cartSummary(cartId: $id) { cartId customer items total } }',
    variables: { id: `cart-${index * 7}` },
  }),
  expected: `"cart-${index * 7}"`,
}));

const lists = Array.from({ length: 100 }, (_, index) => ({
  path: '/graphql',
  body: JSON.stringify({
    query: `query ($value: String!) {
      cartSummaries(where: { customer: { eq: $value } }, orderBy: [{ total: DESC }], first: 20) {
        edges { node { cartId customer items total } }
      }
    }`,
    variables: { value: `customer-${index % 50}` },
  }),
  expected: `"customer-${index % 50}"`,
}));
