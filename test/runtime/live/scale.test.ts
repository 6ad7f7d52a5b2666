import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createRefold, defineConfig, defineEvents, defineProjection, type Refold, t } from '../../../src/index.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { type Client, transports } from './many-clients.ts';

const document = defineEvents('document', { Written: z.object({ text: z.string() }) });

function version(number: 1 | 2) {
  return defineProjection({
    name: 'document',
    version: number,
    events: document,
    table: { id: t.text().primaryKey(), revision: t.integer().index(), text: t.text(), by: t.text() },
    graphql: { globalId: false },
    key: (event) => event.streamId,
    evolve: {
      Written: (row, { payload }) => ({ revision: (row?.revision ?? 0) + 1, text: payload.text, by: `v${number}` }),
    },
    activation: 'manual',
  });
}

let database: TestDatabase;
let db: Database;
let refold: Refold;
let endpoint: string;
const clients = new Set<Client>();

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  refold = await createRefold(
    defineConfig({ projections: [version(1), version(2)], database: { url: database.url }, gateway: { port: 0 } }),
    { logger: pino({ level: 'error' }) },
  );
  endpoint = `${refold.url}/graphql`;
  for (const id of ids) await write(id, 'first');
  await activate(1);
});
afterEach(async () => {
  for (const client of clients) client.drop();
  clients.clear();
  await until(async () => (await openSubscriptions()) === 0);
});
afterAll(async () => {
  await refold.stop();
  await db.close();
  await database.drop();
});

const ids = ['a', 'b', 'c', 'd', 'e'];
const revisions = new Map<string, number>();

async function write(id: string, text: string): Promise<void> {
  await refold.log.append({ family: document, streamId: id, events: [{ type: 'Written', payload: { text } }] });
  revisions.set(id, (revisions.get(id) ?? 0) + 1);
}

async function activate(number: number): Promise<void> {
  await until(async () => {
    const versions = await readRegistry(db);
    return versions.some(({ version, state }) => version === number && state === 'ready');
  });
  await refold.lifecycle.activate('document', number, { actor: 'test', reason: 'it is time' });
  await until(async () => (await fetch(`${refold.url}/health/ready`)).ok);
}

async function openSubscriptions(): Promise<number> {
  const metrics = await (await fetch(`${refold.url}/metrics`)).text();
  return Number(/^refold_graphql_subscriptions (\d+)$/m.exec(metrics)?.[1]);
}

function connect(transport: keyof typeof transports, query: string, lastOnly = false): Client {
  const client = transports[transport]({ endpoint, query, lastOnly });
  clients.add(client);
  return client;
}

/** What a client should end with, and whether it has. */
interface Watching {
  readonly client: Client;
  isRight(by: string): boolean;
}

function watchRow(transport: keyof typeof transports, id: string): Watching {
  const client = connect(transport, `subscription { document(id: "${id}") { revision by } }`, true);
  const isRight = (by: string) => {
    const row = client.messages.at(-1)?.document;
    return isDeepStrictEqual(row, { revision: revisions.get(id), by });
  };
  return { client, isRight };
}

interface Update {
  readonly snapshot: readonly Item[] | null;
  readonly entered: readonly Item[];
  readonly changed: readonly Item[];
  readonly left: readonly { readonly id: string }[];
}

interface Item {
  readonly id: string;
  readonly revision: number;
  readonly by: string;
}

/** The three documents that were written most often. */
function watchList(transport: keyof typeof transports): Watching {
  const item = '{ id revision by }';
  const client = connect(
    transport,
    `subscription { documents(orderBy: [{ revision: DESC }], first: 3) { snapshot ${item} entered ${item} changed ${item} left { id } } }`,
  );
  const state = new Map<string, Item>();
  let applied = 0;
  const isRight = (by: string) => {
    for (; applied < client.messages.length; applied++) {
      const { snapshot, entered, changed, left } = client.messages[applied]?.documents as Update; // the requested fields
      if (snapshot) state.clear();
      for (const { id } of left) state.delete(id);
      for (const one of [...(snapshot ?? []), ...entered, ...changed]) state.set(one.id, one);
    }
    const most = [...revisions].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, 3);
    return isDeepStrictEqual(new Map(state), new Map(most.map(([id, revision]) => [id, { id, revision, by }])));
  };
  return { client, isRight };
}

const many = 1000;

/** Over both transports: most clients watch a row, some the list. */
function watchMany(count: number): Watching[] {
  return Array.from({ length: count }, (_, index) => {
    const transport = index % 2 === 0 ? 'server-sent events' : 'WebSocket';
    return index % 10 < 8 ? watchRow(transport, ids[index % ids.length] ?? 'a') : watchList(transport);
  });
}

const problemsOf = (all: readonly Watching[]) => all.flatMap(({ client }) => client.problems);

/** Fails at once if a client has recorded a problem. */
async function allRight(all: readonly Watching[], by: string): Promise<void> {
  await until(() => {
    expect(problemsOf(all)).toEqual([]);
    return all.every((one) => one.isRight(by));
  });
}

test('a thousand clients on both transports end with the right state, through a reconnect storm and an activation', async () => {
  const staying: Watching[] = [];
  while (staying.length < many) {
    staying.push(...watchMany(100));
    await allRight(staying, 'v1');
  }
  // One connection listens for all clients.
  await until(async () => {
    const [listeners] = await db.query<{ listening: number }>({
      text: "select count(*)::int as listening from pg_stat_activity where datname = current_database() and application_name = 'refold-listen'",
    });
    return listeners?.listening === 1; // one that has ended is listed for a moment
  });

  const [witness] = staying.splice(many - 10, 1);
  const writing = (async () => {
    for (let count = 0; count < 20; count++) {
      await write(ids[(count * count) % ids.length] ?? 'a', `text ${count}`);
      await until(() => witness?.isRight('v1') || witness?.isRight('v2'));
    }
  })();
  // Half of the clients lose their connections and reconnect at the same moment; then another version answers.
  const lost = staying.splice(0, many / 2);
  for (const { client } of lost) client.drop();
  const back = watchMany(many / 2);
  const activated = activate(2);
  await until(() => back.every(({ client }) => client.messages.length > 0));
  await activated;
  await writing;
  await allRight([...staying, ...back], 'v2');
});

describe.each(
  Object.keys(transports) as (keyof typeof transports)[],
)('a client that does not read for a long time, over %s', (transport) => {
  // Together these are several times what the buffers of a connection hold.
  const texts = Array.from({ length: 30 }, (_, index) => `${index} ${'x'.repeat(500_000)}`);

  test('gets the latest state when it reads again; the server queues nothing for it, and others do not wait', async () => {
    const query = 'subscription { document(id: "slow") { text } }';
    const textOf = (client: Client) => (client.messages.at(-1)?.document as { text: string } | null | undefined)?.text;
    await write('slow', 'first');
    const slow = connect(transport, query);
    const other = connect(transport, query, true);
    await until(() => textOf(slow) === 'first' && textOf(other) === 'first');
    slow.pause();
    for (const text of texts) {
      await write('slow', text);
      await until(() => textOf(other) === text);
    }
    slow.resume();
    await until(() => {
      expect([...slow.problems, ...other.problems]).toEqual([]);
      return textOf(slow) === texts.at(-1);
    });
    // It receives what was in the buffers, and the latest state. With a queue it would receive every message.
    expect(slow.messages.length).toBeLessThan(texts.length / 2);
    await write('slow', 'first');
    await until(() => textOf(slow) === 'first');
  });
});
