import { setTimeout } from 'node:timers/promises';
import type { VersionMap } from '../../src/projections/projection/version-map.ts';
import { buildSchema } from '../../src/schema/build-schema.ts';
import { createEventLog, type EventLog } from '../../src/store/event-log.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { cart, item, itemAdded } from '../carts.ts';
import { check } from '../check.ts';
import { type ServerProcess, startServerProcess } from '../http/server-process.ts';
import { cartProjections } from '../many/cart-projections.ts';
import { type CountedDatabase, createCountedDatabase, startCountingServer } from '../many/counted-database.ts';
import type { Result, Scenario } from '../scenario.ts';
import type { BenchServer } from '../server.ts';

export const projectionCount = 200;
const loggedEvents = 1000;
const appends = 10;

const units = {
  'start-empty': 's',
  start: 's',
  'start-statements': 'statements',
  again: 's',
  'again-statements': 'statements',
  schema: 'ms',
  'first-query': 'ms',
  idle: 'statements/s',
  'idle-processor': 'ms/s',
  connections: 'connections',
  append: 'ms',
  'append-statements': 'statements',
  'append-wal': 'KB',
} as const;

type Figures = { readonly [Measure in keyof typeof units]: number };

/** One process of an application with 200 read models, all of which fold each event, compared with one that has a single read model. */
export const manyProjections: Scenario = {
  name: 'many-projections',
  fullOnly: true,
  async run({ quick, rounds }) {
    const server = await startCountingServer();
    const figures = new Map<number, Figures[]>([
      [projectionCount, []],
      [1, []],
    ]);
    for (let round = 0; round < rounds; round++) {
      const counts = [...figures.keys()];
      for (const count of round % 2 === 0 ? counts : counts.reverse())
        figures.get(count)?.push(await measure(server, count, quick ? 3 : 10));
    }
    await server.stop();
    return Object.entries(units).map(([name, unit]): Result => {
      const measured = (count: number) => (figures.get(count) ?? []).map((one) => one[name as keyof Figures]); // a key of the units
      return {
        scenario: `many-projections-${name}`,
        unit,
        better: 'less',
        refold: measured(projectionCount),
        limit: measured(1),
        limitName: 'one projection',
        target: {},
      };
    });
  },
};

async function measure(server: BenchServer, count: number, idleSeconds: number): Promise<Figures> {
  const empty = await createCountedDatabase(server);
  const [ofEmpty, emptySeconds] = await started(empty.url, count);
  await ofEmpty[Symbol.asyncDispose]();
  await empty.client.end();

  const database = await createCountedDatabase(server);
  const db = createDatabase({ url: database.url });
  const log = createEventLog(db, [cart]);
  for (let event = 0; event < loggedEvents; event += 100)
    await log.append({ family: cart, streamId: `cart-${event}`, events: Array(100).fill(itemAdded) });
  await database.statements();
  const [first, start] = await started(database.url, count);
  await using process = first;
  await database.owned(count);
  const startStatements = await database.statements();
  const firstQuery = await timed(() => query(process));
  const appended = await appendToAll(database, log, count);
  // The second process takes over half of the units, and stops again.
  const [second, again] = await started(database.url, count);
  const againStatements = await database.statements();
  await second[Symbol.asyncDispose]();
  await database.owned(count);
  await setTimeout(2000);
  const before = await process.processor();
  await database.statements();
  await setTimeout(idleSeconds * 1000);
  const idle = (await database.statements()) / idleSeconds;
  const processor = ((await process.processor()) - before) / 1000 / idleSeconds;
  const connections = await database.connections();
  await db.close();
  await database.client.end();
  return {
    'start-empty': emptySeconds,
    start,
    'start-statements': startStatements,
    again,
    'again-statements': againStatements,
    schema: schemaMilliseconds(count),
    'first-query': firstQuery,
    idle,
    'idle-processor': processor,
    connections,
    ...appended,
  };
}

/** A process that answers from all read models, and the seconds until it did. */
async function started(url: string, count: number): Promise<readonly [ServerProcess, number]> {
  const start = performance.now();
  const process = await startServerProcess('many-projections-server.ts', url, String(count));
  return [process, (performance.now() - start) / 1000];
}

async function query({ url }: ServerProcess): Promise<void> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ cart001(cartId: "cart-0") { items } }' }),
  });
  const text = await response.text();
  check(text === '{"data":{"cart001":{"items":100}}}', () => text);
}

/** One event after the other, each until it is in the rows of all read models. */
async function appendToAll(database: CountedDatabase, log: EventLog, count: number) {
  const { client } = database;
  const times: number[] = [];
  const wal = await database.wal();
  await database.statements();
  for (let append = 0; append < appends; append++) {
    times.push(
      await timed(async () => {
        const { position } = await log.append({ family: cart, streamId: 'cart-all', events: [itemAdded] });
        const behind = () =>
          client.query('select from refold.processors where checkpoint < $1 limit 1', [String(position)]);
        while ((await behind()).rows.length > 0) await setTimeout(2);
      }),
    );
  }
  const statements = await database.statements();
  const bytes = (await database.wal()) - wal;
  const tables = cartProjections(count).map(
    ({ tableName }) => `select items from read_models.${tableName} where cart_id = 'cart-all'`,
  );
  const { rows } = await client.query<{ items: string }>(
    `select sum(items) as items from (${tables.join(' union all ')}) as all_rows`,
  );
  check(Number(rows[0]?.items) === count * appends * item.quantity, () => `${rows[0]?.items} items in ${count} tables`);
  return {
    append: times.reduce((sum, one) => sum + one, 0) / appends,
    'append-statements': statements / appends,
    'append-wal': bytes / 1024 / appends,
  };
}

/** Of a schema that is built while the code is warm, as at an activation. */
function schemaMilliseconds(count: number): number {
  const served = cartProjections(count).map(
    (projection) => [projection.name, { projection, active: true, state: 'active' }] as const,
  );
  const versions: VersionMap = { revision: 'bench', served: new Map(served) };
  const build = () => buildSchema({ versions, commands: [], maxPageSize: 100 });
  build();
  const start = performance.now();
  build();
  return performance.now() - start;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
