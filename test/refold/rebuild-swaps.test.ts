import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { settingsOfStatements } from '../../src/store/postgres/session-settings.ts';
import { balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let db: Database;
/** Maintains the read tables, and rebuilds them. */
let worker: Refold;
/** Learns of a rebuild by notification. */
let gateway: Refold;
/** Learns of a rebuild within a second. */
let polling: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  // Without notifications, a process can't set them for a session.
  const name = new URL(database.url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settingsOfStatements))
    await database.administer(`alter database ${name} set ${setting} = '${value}'`);
  db = createDatabase({ url: database.url });
  worker = await start('all');
  gateway = await start('gateway');
  polling = await start('gateway', false);
});
afterAll(async () => {
  await polling?.stop();
  await gateway?.stop();
  await worker?.stop();
  await db.close();
  await database.drop();
});

function start(role: 'all' | 'gateway', notifications = true): Promise<Refold> {
  const config = defineConfig({
    projections: [balanceV1, openingsV1],
    commands: [openAccount, credit],
    database: { url: database.url, notifications, answerTimeout: 300_000 },
    gateway: { port: 0, positionTimeout: 300_000, statementTimeout: 300_000 },
    ...(notifications ? {} : { runtime: { ownership: 'lease' } }),
  });
  return createRefold(config, { role });
}

type Data = Readonly<Record<string, { readonly [name: string]: unknown }>>;

async function ask(app: Refold, query: string, headers: Readonly<Record<string, string>> = {}): Promise<Data> {
  const response = await fetch(`${app.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as { data: Data; errors?: unknown };
  expect({ query, errors }).toEqual({ query, errors: undefined });
  return data;
}

async function tableOf(name: string): Promise<string | undefined> {
  const [row] = await db.query<{ table: string }>({
    text: 'select table_name as "table" from refold.projections where name = $1',
    values: [name],
  });
  return row?.table;
}

/** Rebuilds the balances, and returns the table that they had before. */
async function rebuild(): Promise<string | undefined> {
  const before = await tableOf('balance');
  await requestRebuild(db, balanceV1, 'read_models', { actor: 'ann', reason: 'test' });
  await until(async () => (await tableOf('balance')) !== before);
  return before;
}

/** Writes to its own account, and reads it in every way, until it is told to end. Each response must have all that it wrote. */
async function useAccount(app: Refold, id: string, isOver: () => boolean, onRound: () => void): Promise<void> {
  const open = `mutation { openAccount(input: { accountId: "${id}", owner: "${id}" }) { position } }`;
  let position = (await ask(app, open)).openAccount?.position;
  for (let movements = 0; !isOver(); onRound()) {
    const row = { accountId: id, movements };
    const list = `balances(where: { owner: { eq: "${id}" } }, first: 5) { nodes { accountId movements } }`;
    expect(await ask(app, `query @after(position: "${position}") { ${list} }`)).toEqual({ balances: { nodes: [row] } });
    const after = { 'refold-after': String(position) };
    const single = `balance(accountId: "${id}") { accountId movements }`;
    expect(await ask(app, `{ ${single} }`, after)).toEqual({ balance: row });
    const whole = `{ ${single} ${list} balancesAggregate(where: { owner: { eq: "${id}" } }) { count } }`;
    expect(await ask(app, whole, { ...after, 'refold-position': '1' })).toEqual({
      balance: row,
      balances: { nodes: [row] },
      balancesAggregate: { count: 1 },
    });
    // By compiled statements. They demand nothing, so their rows may be older.
    await Promise.all([
      ask(app, `{ ${list} }`),
      ask(app, `{ ${single} }`),
      ask(app, '{ balancesAggregate { count } }'),
    ]);
    const payload = `{ position balance { accountId movements } query { ${list} } }`;
    const { credit: written } = await ask(
      app,
      `mutation { credit(input: { accountId: "${id}", amount: "1" }) ${payload} }`,
    );
    movements++;
    const now = { accountId: id, movements };
    expect(written).toMatchObject({ balance: now, query: { balances: { nodes: [now] } } });
    position = written?.position;
  }
}

test('no request fails while rebuilds replace tables, in the process that rebuilds and in others', async () => {
  let isOver = false;
  const clients = [worker, gateway, polling, worker, gateway, polling].map((app, index) => {
    const client = { rounds: 0, running: Promise.resolve() };
    const onRound = () => void client.rounds++;
    client.running = useAccount(app, `account-${index}`, () => isOver, onRound);
    return client;
  });
  const running = Promise.all(clients.map((client) => client.running));
  const rebuilds = (async () => {
    for (let n = 0; n < 2; n++) {
      await rebuild();
      const seen = new Map(clients.map((client) => [client, client.rounds]));
      await until(() => isOver || clients.every((client) => client.rounds > (seen.get(client) ?? 0)));
    }
  })();
  await Promise.race([rebuilds, running]).finally(() => {
    isOver = true;
  });
  await Promise.all([rebuilds, running]);
});

test('a process that does not know of a rebuild answers from the new table, also if the table that it knows is gone', async () => {
  const { openAccount: opened } = await ask(
    worker,
    'mutation { openAccount(input: { accountId: "z", owner: "z" }) { position } }',
  );
  const demand = `@after(position: "${opened?.position}")`;
  await ask(polling, `query ${demand} { balance(accountId: "z") { movements } }`);
  const row = 'balance(accountId: "z") { movements }';
  const asked = [
    `query ${demand} { ${row} }`,
    `{ ${row} openings(owner: "z") { opened } balances(first: 1) { totalCount nodes { accountId } } }`,
    `mutation { credit(input: { accountId: "z", amount: "1" }) { balance { movements } } }`,
  ];
  let movements = 0;
  for (const query of asked) {
    const before = await rebuild();
    // As it is after five minutes, in which the process was frozen.
    await db.query({ text: `drop table read_models.${before}` });
    const data = await ask(polling, query);
    if (query.startsWith('mutation')) expect(data).toEqual({ credit: { balance: { movements: ++movements } } });
    else expect(data).toMatchObject({ balance: { movements } });
  }
});
