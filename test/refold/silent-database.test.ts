import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { untilActive } from '../support/patient.ts';
import { account, balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// Everything at its default limits, as users have it.
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

async function post(query: string): Promise<{ status: number; data?: Record<string, unknown>; code: unknown }> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  return { status: response.status, data, code: errors?.[0]?.extensions.code };
}

async function readiness(): Promise<{ status: number; problems?: unknown }> {
  const response = await fetch(`${refold.url}/health/ready`);
  return { status: response.status, ...(await response.json()) };
}

const open = (id: string, key: string) =>
  `mutation { openAccount(input: { accountId: "${id}", owner: "ada" }, idempotencyKey: "${key}") { streamVersion } }`;

test('a network that swallows everything is told as an outage, and all goes on by itself when it is over', async () => {
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
  expect(await until(async () => (await post(open('during', 'k2'))).data)).toEqual({
    openAccount: { streamVersion: 1 },
  });
  await until(async () => (await readiness()).status === 200);
  const shown = '{ balance(accountId: "during") { amount } }';
  await until(async () => (await post(shown)).data?.balance);
  await until(() => lines.some((line) => line.startsWith('the database is available again')));
  const told = lines.filter((line) => line.startsWith('the database is not available'));
  expect(told.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes('could not look for work'))).toEqual([]);
});

test('open connections that are silent are replaced while new ones get through', async () => {
  await refold.log.append({ family: account, streamId: 'warm', events: [{ type: 'Opened', payload: { owner: 'a' } }] });
  proxy.swallowOpen();
  // The first waits for an answer that never comes. With a key, the process itself finds out what became of it.
  expect(await post(open('replaced', 'k3'))).toMatchObject({
    status: 200,
    data: { openAccount: { streamVersion: 1 } },
  });
  expect(await post('{ balances { nodes { amount } } }')).toMatchObject({ status: 200 });
  await until(async () => (await post('{ balance(accountId: "replaced") { amount } }')).data?.balance);
});
