import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/server/migrate.ts';
import { callsPerSecond } from '../calls-per-second.ts';
import { createCartLog } from '../cart-log.ts';
import { cart, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { requestsPerSecond } from '../http/load.ts';
import { type ServerProcess, startServerProcess } from '../http/server-process.ts';
import { storedApart } from '../many/stored-apart.ts';
import { openClient } from '../open-client.ts';
import type { BenchContext, Result, Scenario } from '../scenario.ts';
import { type BenchServer, startBenchServer } from '../server.ts';
import { appendSteadily } from '../steady-appends.ts';

const callers = 32;
const steadily = 200;
const events = 20_000;
const streams = 1000;
const streamOf = (number: number) => `cart-${number % streams}`;

const measures = {
  append: ['events/s', 'more'],
  'log-wal': ['bytes of an event', 'less'],
  'log-processor': ['µs of an event', 'less'],
  'by-id': ['requests/s', 'more'],
} as const;

type Figures = { readonly [Measure in keyof typeof measures]: number };

/**
 * The log and three read models of it, the read models on a server of their own, compared with both on one server. All servers share the cores of
 * this machine. So the rates say little of two machines; what the log's server spends on an event does.
 */
export const readStores: Scenario = {
  name: 'read-stores',
  fullOnly: true,
  async run(context) {
    const { server, rounds } = context;
    const apartServer = await startBenchServer({});
    const apart = await open(server, apartServer);
    const together = await open(server, undefined);
    const figures: { readonly refold: Figures[]; readonly limit: Figures[] } = { refold: [], limit: [] };
    for (let round = 0; round < rounds; round++) {
      const turns = [
        async () => void figures.refold.push(await measure(context, apart)),
        async () => void figures.limit.push(await measure(context, together)),
      ];
      for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    }
    await apart.close();
    await together.close();
    await apartServer.stop();
    return Object.entries(measures).map(([name, [unit, better]]): Result => {
      const of = (all: readonly Figures[]) => all.map((one) => one[name as keyof Figures]); // a key of the measures
      const limitName = 'all on one server';
      return {
        scenario: `read-stores-${name}`,
        unit,
        better,
        refold: of(figures.refold),
        limit: of(figures.limit),
        limitName,
        target: {},
      };
    });
  },
};

interface Application {
  readonly log: EventLog;
  readonly process: ServerProcess;
  /** The database of the log, and the one of the read models. */
  readonly ofLog: pg.Client;
  readonly ofRows: pg.Client;
  close(): Promise<void>;
}

async function open(server: BenchServer, apart: BenchServer | undefined): Promise<Application> {
  const { url } = await createCartLog(server, 'bench_stores', events, streams);
  const storeUrl = await apart?.createDatabase('bench_store');
  if (storeUrl !== undefined) await migrate(storeUrl);
  const process = await startServerProcess('read-store-server.ts', url, ...(storeUrl === undefined ? [] : [storeUrl]));
  const ofLog = await openClient(url);
  const ofRows = await openClient(storeUrl ?? url);
  const db = createDatabase({ url });
  await folded(ofRows, events);
  return {
    log: createEventLog(db, [cart]),
    process,
    ofLog,
    ofRows,
    async close() {
      await process[Symbol.asyncDispose]();
      await Promise.all([ofLog.end(), ofRows.end(), db.close()]);
    },
  };
}

async function measure(
  { server, quick }: BenchContext,
  { log, process, ofLog, ofRows }: Application,
): Promise<Figures> {
  const milliseconds = quick ? 2000 : 10_000;
  await server.settle();
  const [wal, processor] = [await walOf(ofLog), server.processor()];
  let appends = 0;
  let last = 0;
  const start = performance.now();
  await callsPerSecond(callers, milliseconds, async () => {
    const { position } = await log.append({ family: cart, streamId: streamOf(appends++), events: [itemAdded] });
    last = Math.max(last, Number(position));
  });
  await folded(ofRows, last);
  const seconds = (performance.now() - start) / 1000;
  const spent = { wal: (await walOf(ofLog)) - wal, processor: server.processor() - processor };
  const { rows } = await ofRows.query<{ n: number }>('select count(*)::int as n from read_models.cart_lines');
  const { rows: logged } = await ofLog.query<{ n: number }>('select count(*)::int as n from refold.events');
  check(rows[0]?.n === logged[0]?.n, () => `${rows[0]?.n} rows for ${logged[0]?.n} events`);

  const steady = appendSteadily(log, steadily, streamOf);
  await pause(500);
  const ids = Array.from({ length: 100 }, (_, index) => `cart-${index * 7}`);
  const byId = await requestsPerSecond({
    url: process.url,
    requests: ids.map((id) => ({
      path: '/graphql',
      body: JSON.stringify({
        query: 'query ($id: ID!) { cartSummary(cartId: $id) { cartId customer items total } }',
        variables: { id },
      }),
      expected: `"${id}"`,
    })),
    connections: 32,
    milliseconds,
  });
  await steady.stop();
  await folded(ofRows, Number(await log.head()));
  return {
    append: appends / seconds,
    'log-wal': spent.wal / appends,
    'log-processor': spent.processor / appends,
    'by-id': byId,
  };
}

/** Waits until all read models have the events up to a position. */
async function folded(client: pg.Client, position: number): Promise<void> {
  const reached = `select from refold.processors where checkpoint >= $1`;
  while ((await client.query(reached, [position])).rows.length < storedApart(false).length) await pause(5);
}

async function walOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: string }>(`select pg_current_wal_lsn() - '0/0'::pg_lsn as n`);
  return Number(rows[0]?.n);
}
