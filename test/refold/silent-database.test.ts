import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createDatabase } from '../../src/store/postgres/database.ts';
import { untilActive } from '../support/patient.ts';
import { freePort } from '../support/postgres-cluster.ts';
import { account, balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// Everything at its default limits, as for users.
let database: TestDatabase;
let proxy: TcpProxy;
let refold: Refold;
const lines: string[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startTcpProxy(Number(new URL(database.url).port));
  const config = defineConfig({
    projections: [balanceV1, openingsV1],
    commands: [openAccount, credit],
    database: { url: proxy.through(database.url) },
    gateway: { port: 0 },
  });
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  refold = await createRefold(config, { logger });
  await untilActive(refold, 'balance@1');
});
afterAll(async () => {
  proxy?.resume();
  await refold?.stop();
  await proxy?.close();
  await database?.drop();
});

interface Answer {
  readonly status: number;
  readonly data?: Record<string, unknown>;
  readonly code: unknown;
  readonly message: unknown;
}

async function post(query: string): Promise<Answer> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  return { status: response.status, data, code: errors?.[0]?.extensions.code, message: errors?.[0]?.message };
}

async function readiness(): Promise<{ status: number; problems?: unknown }> {
  const response = await fetch(`${refold.url}/health/ready`);
  return { status: response.status, ...(await response.json()) };
}

const open = (id: string, key?: string) => {
  const keyed = key === undefined ? '' : `, idempotencyKey: "${key}"`;
  return `mutation { openAccount(input: { accountId: "${id}", owner: "ada" }${keyed}) { streamVersion position } }`;
};

/** The payload. An operation that fails has none. */
const untilOpened = (id: string, key: string) => until(async () => (await post(open(id, key))).data?.openAccount);

/** The log as it is, past the proxy. */
async function written(streamId: string): Promise<{ position: bigint }[]> {
  const db = createDatabase({ url: database.url });
  const rows = await db.query<{ position: bigint }>({
    text: 'select position from refold.events where stream_id = $1',
    values: [streamId],
  });
  await db.close();
  return rows;
}

/** Once the server has the next append, its answer is lost, and after that nobody can connect. */
async function loseTheAnswer(nobody: number): Promise<void> {
  await proxy.cutAfter((chunk) => chunk.includes('"type":"Opened"'));
  proxy.retarget(nobody);
  proxy.cutAll();
}

const serverIsBack = () => proxy.retarget(Number(new URL(database.url).port));

test('a network that drops everything is reported as an outage, and everything continues by itself afterwards', async () => {
  expect(await post(open('before', 'k1'))).toMatchObject({ status: 200 });
  proxy.swallow();
  const [mutation, query] = await Promise.all([
    post(open('during', 'k2')),
    post('{ balances { nodes { amount } } }'),
    until(async () => (await readiness()).status === 503),
  ]);
  expect(mutation).toMatchObject({ status: 503, code: expect.stringMatching('DATABASE_UNAVAILABLE|OUTCOME_UNKNOWN') });
  expect(query).toMatchObject({ status: 503, code: 'DATABASE_UNAVAILABLE' });
  expect(await readiness()).toMatchObject({ problems: { appends: expect.any(String), reads: expect.any(String) } });
  proxy.resume();
  expect(await untilOpened('during', 'k2')).toMatchObject({ streamVersion: 1 });
  await until(async () => (await readiness()).status === 200);
  const shown = '{ balance(accountId: "during") { amount } }';
  await until(async () => (await post(shown)).data?.balance);
  await until(() => lines.some((line) => line.startsWith('the database is available again')));
  const told = lines.filter((line) => line.startsWith('the database is not available'));
  expect(told.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes('could not look for work'))).toEqual([]);
});

test('silent open connections are replaced while new ones work', async () => {
  await refold.log.append({ family: account, streamId: 'warm', events: [{ type: 'Opened', payload: { owner: 'a' } }] });
  proxy.swallowOpen();
  // The first append waits for a response that never comes. With a key, the process itself finds out its outcome.
  expect(await post(open('replaced', 'k3'))).toMatchObject({
    status: 200,
    data: { openAccount: { streamVersion: 1 } },
  });
  expect(await post('{ balances { nodes { amount } } }')).toMatchObject({ status: 200 });
  await until(async () => (await post('{ balance(accountId: "replaced") { amount } }')).data?.balance);
});

const unknown = {
  status: 503,
  code: 'OUTCOME_UNKNOWN',
  message:
    'The database did not answer. The command may have been written: send it again with the same idempotency key.',
};

test('a mutation whose append was executed and not answered is OUTCOME_UNKNOWN, and its key finds what was written', async () => {
  const lost = loseTheAnswer(await freePort());
  expect(await post(open('unanswered', 'k4'))).toMatchObject(unknown);
  await lost;
  const [event, ...more] = await until(async () => {
    const events = await written('unanswered');
    return events.length > 0 && events;
  });
  expect(more).toEqual([]);
  serverIsBack();
  const again = await untilOpened('unanswered', 'k4');
  const position = expect.stringMatching(new RegExp(`^${event?.position}\\.`));
  expect(again).toEqual({ streamVersion: 1, position });
  expect(await written('unanswered')).toEqual([event]);
});

test('the same mutation without a key is not repeated by itself', async () => {
  const lost = proxy.cutAfter((chunk) => chunk.includes('"type":"Opened"'));
  expect(await post(open('without a key'))).toMatchObject(unknown);
  await lost;
  await until(async () => (await written('without a key')).length > 0);
  expect(await written('without a key')).toHaveLength(1);
});

test('a mutation of which nothing could be sent is DATABASE_UNAVAILABLE, and nothing of it is written', async () => {
  proxy.retarget(await freePort());
  proxy.cutAll();
  expect(await post(open('never sent', 'k5'))).toMatchObject({
    status: 503,
    code: 'DATABASE_UNAVAILABLE',
    message: 'The database is not available. Nothing was done: try again.',
  });
  serverIsBack();
  expect(await written('never sent')).toEqual([]);
  expect(await untilOpened('never sent', 'k5')).toMatchObject({ streamVersion: 1 });
  expect(await written('never sent')).toHaveLength(1);
});
