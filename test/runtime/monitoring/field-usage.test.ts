import { createClient } from 'graphql-ws';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  type BreakingRule,
  createRefold,
  defineConfig,
  defineProjection,
  type FieldUsageOptions,
  type Projection,
  type Refold,
  t,
} from '../../../src/index.ts';
import { createUsageRecorder } from '../../../src/runtime/monitoring/usage-recorder.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { pruneUsage } from '../../../src/store/registry/field-usage.ts';
import { account, balanceV1 } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

// The tests run one after the other on one database: recorded usage stays.
let database: TestDatabase;
let db: Database;
let refold: Refold;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  await restart([balanceV1]);
  await refold.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await until(() => isActive(1));
});
afterAll(async () => {
  await refold.stop();
  await db.close();
  await database.drop();
});

async function restart(projections: readonly Projection[], fieldUsage: false | FieldUsageOptions = { maxClients: 4 }) {
  await refold?.stop();
  const gateway = { port: 0, fieldUsage };
  refold = await createRefold(defineConfig({ projections, gateway, database: { url: database.url } }), {
    logger: pino({ level: 'silent' }),
  });
}

const version = async (number: number) => (await refold.status()).find((status) => status.version === number);
const isActive = async (number: number) => (await version(number))?.state === 'active';

interface Asking {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
}

async function ask(body: Asking, headers: Record<string, string> = {}) {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  expect(answer.errors).toBeUndefined();
}

const client = (name: string, number = '1.0') => ({
  'graphql-client-name': name,
  'graphql-client-version': number,
});

/** `Balance.owner web 1.0 3` */
async function recorded(...paths: string[]): Promise<string[]> {
  const { fields } = await refold.schemaEvolution.usage({ paths });
  return fields.map((one) =>
    [one.path, one.client, one.clientVersion, one.pins, one.operations].filter((part) => part !== '').join(' '),
  );
}

test('usage counts which client requested which fields, for every kind of operation', async () => {
  const owner = { query: '{ balance(accountId: "a") { owner } }' };
  await ask(owner, client('web', '3.2'));
  await ask(owner, client('web', '3.2'));
  await ask({ query: '{ balance(accountId: "a") { owner amount } }' }, client('web', '3.3'));
  await ask(owner, { ...client('web', '3.2'), 'refold-pin': 'balance@1' });
  await ask(owner);
  // The slow path through the gateway.
  const url = new URL(`${refold.url}/graphql`);
  url.search = String(new URLSearchParams({ query: owner.query }));
  await fetch(url, { headers: { accept: 'application/json', 'apollographql-client-name': 'ios' } });
  await refold.graphql(owner.query);
  const socket = createClient({
    url: `${refold.url?.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: client('tv'),
  });
  await socket.iterate({ query: 'subscription { balance(accountId: "a") { amount } }' }).next();
  await socket.dispose();
  expect(await recorded('Balance.owner', 'Balance.amount')).toEqual([
    'Balance.amount tv 1.0 1',
    'Balance.amount web 3.3 1',
    'Balance.owner web 3.2 2',
    'Balance.owner (this program) 1',
    'Balance.owner (unnamed) 1',
    'Balance.owner ios 1',
    'Balance.owner web 3.2 balance@1 1',
    'Balance.owner web 3.3 1',
  ]);
});

test('refused operations are not counted, and fields used in variables are', async () => {
  await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ balance(accountId: "a") { movements nothing } }' }),
  });
  expect(await recorded('Balance.movements')).toEqual([]);
  const query = 'query ($where: BalanceFilter) { balances(where: $where) { edges { node { accountId } } } }';
  await ask({ query, variables: { where: { owner: { eq: 'Ada' } } } });
  expect(await recorded('BalanceFilter')).toEqual(['BalanceFilter (unnamed) 1', 'BalanceFilter.owner (unnamed) 1']);
});

test('a flush waits for a write in progress, and later reads see everything', async () => {
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const recorder = createUsageRecorder({
    db: {
      async query({ text }) {
        if (!text.includes('insert into refold.field_usage')) return [];
        begun.resolve();
        await held.promise;
        return [];
      },
    },
    usage: { keepDays: 1, maxClients: 1 },
    logger: pino({ level: 'silent' }),
  });
  recorder.count({ name: 'web', version: '1', pins: '' }, ['Balance.owner'], new Set());
  const first = recorder.flush();
  await begun.promise;
  let told = false;
  const second = recorder.flush().then(() => {
    told = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toBe(false);
  held.resolve();
  await Promise.all([first, second]);
  await recorder.stop();
});

test('clients with arbitrary names fill neither the table nor the log', async () => {
  for (const name of ['bot-1', 'bot-2', '(this program)', `\u00e9${'x'.repeat(5000)}`])
    await ask({ query: '{ balance(accountId: "a") { accountId } }' }, client(name));
  expect(await recorded('Balance.accountId')).toEqual([
    'Balance.accountId (others) 4',
    'Balance.accountId (unnamed) 1',
  ]);
  const rows = await db.query<{ clients: bigint }>({ text: 'select count(*) as clients from refold.usage_clients' });
  expect(Number(rows[0]?.clients)).toBe(4);
});

/** Without the amount. */
function withoutAmount(breaking: BreakingRule): Projection {
  return defineProjection({
    name: 'balance',
    version: 2,
    events: account,
    table: { accountId: t.text().primaryKey(), owner: t.text().index(), movements: t.integer() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner, movements: 0 }) },
    activation: { breaking },
  });
}

const heldReason = async () => (await version(2))?.heldReason;

test('a held version names the clients of what it breaks, and so does the list of its changes', async () => {
  await restart([balanceV1, withoutAmount({ unusedDays: 30 })]);
  expect(await until(heldReason)).toMatch(
    / Asked for in the last 30 days: Balance\.amount by tv 1\.0 \(1 operation, last \d{4}-\d\d-\d\d\), web 3\.3 \(1 operation, last \S+\)\. /,
  );
  const { changes, than } = await refold.schemaEvolution.changes('balance', 2);
  const amount = changes.find(({ path }) => path === 'Balance.amount');
  expect([than, amount?.criticality, amount?.askedBy.map((one) => one.client)]).toEqual([
    'balance@1',
    'breaking',
    ['tv', 'web'],
  ]);
  expect(await refold.schemaEvolution.pendingChanges()).toMatchObject([{ version: 'balance@2', than: 'balance@1' }]);
  const back = await refold.schemaEvolution.changes('balance', 1, 2);
  expect(new Set(back.changes.map(({ criticality }) => criticality))).toEqual(new Set(['safe']));
  await expect(refold.schemaEvolution.changes('balance', 7)).rejects.toThrow(
    /balance@1 and balance@7 can't be compared/,
  );
  await expect(refold.schemaEvolution.changes('balance', 1)).rejects.toThrow(/No version below balance@1 is active/);
  await expect(refold.lifecycle.activate('balance', 2, { actor: 'ann', reason: 'try' })).rejects.toThrow(
    /Asked for in the last 30 days: Balance\.amount by tv/,
  );
});

test('pinned use does not hold a version, and use recorded for too short a time does', async () => {
  await db.query({ text: `delete from refold.field_usage where path = 'Balance.amount'` });
  await ask({ query: '{ balance(accountId: "a") { amount } }' }, { 'refold-pin': 'balance@1' });
  expect(await recorded('Balance.amount')).toHaveLength(1);
  await expect(refold.lifecycle.activate('balance', 2, { actor: 'ann', reason: 'try' })).rejects.toThrow(
    /Nobody has asked for any of it since recording began \d+ min ago\. Say --breaking/,
  );
});

test('a version is no longer held if nobody has used what it breaks in the declared days', async () => {
  await database.administer(`update refold.usage_recording set since = now() - interval '31 days'`);
  // A gateway that does not record usage makes it unknown again.
  await restart([balanceV1], false);
  await until(async () => (await refold.schemaEvolution.usage()).recordedDays === null);
  await restart([balanceV1, withoutAmount({ unusedDays: 30 })]);
  await until(async () => (await refold.schemaEvolution.usage()).recordedDays !== null);
  expect((await version(2))?.state).toBe('ready');
  await database.administer(`update refold.usage_recording set since = now() - interval '31 days'`);
  await restart([balanceV1, withoutAmount({ unusedDays: 30 })]);
  await until(() => isActive(2));
});

test('usage older than its retention is deleted', async () => {
  await db.query({ text: `update refold.field_usage set day = day - 91 where path = 'Balance.owner'` });
  await pruneUsage(db, 90);
  const rows = await db.query<{ path: string }>({ text: 'select distinct path from refold.field_usage' });
  expect(rows.map(({ path }) => path)).not.toContain('Balance.owner');
  expect(rows.map(({ path }) => path)).toContain('Balance.accountId');
});
