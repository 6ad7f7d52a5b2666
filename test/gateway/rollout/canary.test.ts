import { createClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { SignJWT } from 'jose';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createRefold, defineConfig, defineProjection, jwt, type Refold, t } from '../../../src/index.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { account, balanceTable, balanceV1, credit } from '../../support/sample-domain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

// One application, served by two processes, for all tests: each test starts its own canary, and ends it.
let database: TestDatabase;
let db: Database;
let refold: Refold;
let other: Refold;

const step = { actor: 'ann', reason: 'test' };
const keys = 'a secret of at least thirty-two bytes';
/** Its values differ from those of the first version. */
const second = defineProjection({
  name: 'balance',
  version: 2,
  events: account,
  table: { ...balanceTable, largest: t.decimal(20, 2) },
  key: (event) => event.streamId,
  evolve: {
    Opened: () => ({ owner: 'Two', amount: '0', movements: 0, largest: '0' }),
    Credited: (row, event) => row && { ...row, largest: event.payload.amount },
  },
  activation: 'manual',
});
const balanceV3 = defineProjection({
  name: 'balance',
  version: 3,
  events: account,
  table: { accountId: t.text().primaryKey(), owner: t.text().index() },
  key: (event) => event.streamId,
  evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
  activation: 'manual',
});

const configured = (url: string) =>
  defineConfig({
    projections: [balanceV1, second, balanceV3],
    commands: [credit],
    auth: jwt({ keys, issuer: 'shop', audience: 'api' }),
    gateway: { port: 0, positionTimeout: 300_000 },
    database: { url },
  });

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
  const logger = pino({ level: 'silent' });
  refold = await createRefold(configured(database.url), { logger });
  other = await createRefold(configured(database.url), { logger, role: 'gateway' });
  await refold.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'Ada' } }] });
  await until(async () =>
    (await refold.status()).every(
      ({ state, version, lag }) => lag === 0n && state === (version === 1 ? 'active' : 'ready'),
    ),
  );
});
afterAll(async () => {
  await other.stop();
  await refold.stop();
  await db.close();
  await database.drop();
});

const canaryOf = async () => (await refold.status()).find(({ version }) => version === 2)?.canary ?? null;

beforeEach(async () => {
  if (await canaryOf()) await refold.lifecycle.endCanary('balance', step);
});

/** Starts a canary, and waits until every process knows it: its header differs from the one before. */
async function start(percent: number): Promise<void> {
  const header = { name: 'x-try', value: String(Math.random()) };
  await refold.lifecycle.startCanary('balance', 2, { percent, header }, step);
  for (const url of [refold.url, other.url])
    await until(async () => (await canaryOfAnonymous({ ...hidden, 'x-try': header.value }, url)) !== null);
}

/** Behind an untrusted proxy: such clients are in no share of any canary. */
const hidden = { 'x-forwarded-for': '10.0.0.1' };

async function canaryOfAnonymous(headers: Record<string, string>, url = refold.url): Promise<string | null> {
  const response = await fetch(`${url}/graphql?query={__typename}`, {
    headers: { accept: 'application/json', ...headers },
  });
  await response.text();
  return response.headers.get('refold-canary');
}

const owner = '{ balance(accountId: "a") { owner } }';

async function ask(query: string, headers: Record<string, string> = {}, url = refold.url) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${await token('nobody')}`, ...headers },
    body: JSON.stringify({ query }),
  });
  return { ...(await response.json()), canary: response.headers.get('refold-canary') };
}

const tokens = new Map<string, Promise<string>>();
function token(subject: string): Promise<string> {
  const known = tokens.get(subject);
  const signed =
    known ??
    new SignJWT({})
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(subject)
      .setIssuer('shop')
      .setAudience('api')
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(keys));
  tokens.set(subject, signed);
  return signed;
}

const session = (id: number) => ({ 'refold-session': `session-${id}` });

test('the canary answers a share of the sessions, the same ones in every process', async () => {
  await start(30);
  const chosen: number[] = [];
  for (let id = 0; id < 60; id++) {
    const first = await ask(owner, session(id));
    const again = await ask(owner, session(id), other.url);
    expect([again.canary, again.data]).toEqual([first.canary, first.data]);
    expect(first.data.balance.owner).toBe(first.canary === 'balance@2' ? 'Two' : 'Ada');
    if (first.canary) chosen.push(id);
  }
  // By a hash, so it is the same in each run.
  expect(chosen.length).toBeGreaterThan(60 * 0.15);
  expect(chosen.length).toBeLessThan(60 * 0.45);
  // A larger share includes them all.
  await refold.lifecycle.startCanary('balance', 2, { percent: 100 }, step);
  for (const id of chosen) expect((await ask(owner, session(id))).canary).toBe('balance@2');
});

test('viewers are distinguished by identity, with any of their tokens', async () => {
  await start(50);
  const canaries = new Set<string | null>();
  for (let id = 0; id < 12; id++) {
    const authorization = `Bearer ${await token(`viewer-${id}`)}`;
    const { canary } = await ask(owner, { authorization });
    expect((await ask(owner, { authorization }, other.url)).canary).toBe(canary);
    canaries.add(canary);
  }
  expect(canaries).toEqual(new Set([null, 'balance@2']));
});

test('clients that can’t be distinguished are not in any share', async () => {
  await start(100);
  expect(await canaryOfAnonymous({})).toBe('balance@2');
  expect(await canaryOfAnonymous(hidden)).toBeNull();
  expect(await canaryOfAnonymous({ ...hidden, ...session(1) })).toBe('balance@2');
});

test('one version answers a whole operation, including the reads of a mutation', async () => {
  await start(100);
  const mixed = await ask(
    '{ _meta { projections(name: "balance") { version } } one: balance(accountId: "a") { owner largest } balances { edges { node { owner } } } }',
  );
  expect(mixed.data).toEqual({
    _meta: { projections: [{ version: 2 }] },
    one: { owner: 'Two', largest: expect.any(String) },
    balances: { edges: [{ node: { owner: 'Two' } }] },
  });
  const written = await ask(
    'mutation { credit(input: { accountId: "a", amount: "5" }) { query { balance(accountId: "a") { owner largest } } } }',
  );
  expect(written).toMatchObject({ data: { credit: { query: { balance: { owner: 'Two', largest: '5.00' } } } } });
});

test('a pin takes precedence over a canary, and a subscription uses the active version', async () => {
  await start(100);
  const pinned = await ask(owner, { 'refold-pin': 'balance@1' });
  expect([pinned.canary, pinned.data.balance.owner]).toEqual([null, 'Ada']);
  const authorization = `Bearer ${await token('nobody')}`;
  const events = createClient({ url: `${refold.url}/graphql`, retryAttempts: 0, headers: { authorization } });
  const first = await events.iterate({ query: `subscription { balance(accountId: "a") { owner } }` }).next();
  expect(first.value).toEqual({ data: { balance: { owner: 'Ada' } } });
  events.dispose();
  const socket = createSocketClient({
    url: `${refold.url?.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  const followed = await socket.iterate({ query: `subscription { balance(accountId: "a") { owner } }` }).next();
  expect(followed.value).toEqual({ data: { balance: { owner: 'Ada' } } });
  // Also in the fields that it can select.
  const beyond = socket.iterate({ query: 'subscription { balance(accountId: "a") { largest } }' }).next();
  await expect(beyond).rejects.toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
  // A query over a socket is an operation like any other.
  const asked = await socket.iterate({ query: owner }).next();
  expect(asked.value).toEqual({ data: { balance: { owner: 'Two' } } });
  await socket.dispose();
});

test('a canary’s operations are measured separately', async () => {
  await start(0);
  await ask(owner);
  const metrics = await (await fetch(`${refold.url}/metrics`)).text();
  const count = (group: string) =>
    Number(
      new RegExp(
        `refold_graphql_canary_seconds_count{version="balance@2",group="${group}",operation="query",outcome="ok"} (\\d+)`,
      ).exec(metrics)?.[1] ?? 0,
    );
  expect(count('canary')).toBeGreaterThan(0);
  expect(count('others')).toBeGreaterThan(0);
});

test('the figures of a canary and of the others are summed over all processes, and start at zero with each canary', async () => {
  await start(0);
  const figures = async () => {
    await other.status(); // a process saves its counts before it returns its status
    return (await refold.status()).find(({ version }) => version === 2)?.canaryFigures;
  };
  const before = await figures();
  for (const { url } of [refold, other]) {
    await ask(owner, {}, url);
    await ask('{ node(id: "no id") { id } }', {}, url);
  }
  const after = await figures();
  const { operations = -1, errors = -1, otherOperations = -1, otherErrors = -1 } = before ?? {};
  expect(after).toEqual({ operations, errors, otherOperations: otherOperations + 4, otherErrors: otherErrors + 2 });
  expect(operations).toBeGreaterThan(0); // the start polls both processes
  await refold.lifecycle.startCanary('balance', 2, { percent: 1 }, step);
  expect(await figures()).toEqual({ operations: 0, errors: 0, otherOperations: 0, otherErrors: 0 });
});

test('only a ready version that breaks no client can be a canary, and the log of transitions has its reason', async () => {
  const begin = (version: number, percent = 5) => refold.lifecycle.startCanary('balance', version, { percent }, step);
  await expect(begin(1)).rejects.toThrow('balance@1 is active; only a ready version can be a canary.');
  await expect(begin(2, 101)).rejects.toThrow(/found 101 %/);
  await expect(begin(3)).rejects.toThrow(/balance@3 would break clients of balance@1: \d breaking change/);
  await expect(refold.lifecycle.endCanary('balance', step)).rejects.toThrow("No version of 'balance' is a canary.");
  await begin(2);
  expect(await canaryOf()).toEqual({ percent: 5, header: null });
  const steps = await db.query<{ reason: string }>({
    text: 'select reason from refold.transitions where version = 2 order by id desc limit 1',
  });
  expect(steps).toEqual([{ reason: 'canary for 5 %: test' }]);
});

test('a canary ends at once on request, and with its activation', async () => {
  await start(100);
  await refold.lifecycle.endCanary('balance', step);
  await until(async () => (await ask(owner)).canary === null && (await ask(owner, {}, other.url)).canary === null);
  expect((await ask(owner)).data.balance.owner).toBe('Ada');
  await start(100);
  await refold.lifecycle.activate('balance', 2, step);
  await until(async () => (await ask(owner)).canary === null);
  expect((await ask(owner)).data.balance.owner).toBe('Two');
  expect(await canaryOf()).toBeNull();
});
