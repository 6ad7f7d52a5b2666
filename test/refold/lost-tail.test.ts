import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { type Feed, followFeed } from '../support/feed-client.ts';
import { type LosingServers, startLosingServers } from '../support/losing-servers.ts';
import { account, balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

// Processes survive a fail-over to a standby that lacked sixty events: they must forget what they knew of those.
let servers: LosingServers;
const said: { level: number; msg: string }[] = [];
const apps: Refold[] = [];
const feeds: Feed[] = [];

beforeAll(async () => {
  servers = await startLosingServers(['advisory', 'lease']);
});
afterAll(async () => {
  for (const feed of feeds) await feed.stop();
  for (const app of apps) await app.stop();
  await servers?.stop();
});

async function start(ownership: 'advisory' | 'lease', role: 'all' | 'gateway' = 'all'): Promise<Refold> {
  const config = defineConfig({
    projections: [{ ...balanceV1, history: ([accountId]) => String(accountId) }],
    commands: [openAccount, credit],
    database: { url: servers.url(ownership) },
    // Locks that were released without a server are free when their lease ends.
    runtime: ownership === 'lease' ? { ownership, leaseSeconds: 5 } : { ownership },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line)) });
  const app = await createRefold(config, { logger, role });
  apps.push(app);
  return app;
}

function follow(app: Refold, field: string): Feed {
  const feed = followFeed(`${app.url}/graphql`, field);
  feeds.push(feed);
  return feed;
}

/** Opens accounts, one append each, and retries while no server answers. */
async function open(app: Refold, prefix: string, count: number): Promise<void> {
  for (let number = 1; number <= count; number++) {
    const streamId = `${prefix}-${number}`;
    const events = [{ type: 'Opened', payload: { owner: 'ada' } } as const];
    await until(() =>
      app.log.append({ family: account, streamId, events, idempotencyKey: streamId }).catch(() => false),
    );
  }
}

/** Credits an account that no fail-over loses, and retries while no server answers. */
async function creditKept(app: Refold, amount: string, idempotencyKey: string): Promise<void> {
  const events = [{ type: 'Credited', payload: { amount } } as const];
  await until(() => app.log.append({ family: account, streamId: 'kept-2', events, idempotencyKey }).catch(() => false));
}

async function keptAmount(app: Refold): Promise<unknown> {
  const { data } = await app.graphql('{ balance(accountId: "kept-2") { amount } }');
  return JSON.parse(JSON.stringify(data))?.balance?.amount;
}

async function accounts(app: Refold): Promise<string[]> {
  const { data } = await app.graphql('{ balances(first: 200) { nodes { accountId } } }');
  const { nodes } = (data as { balances?: { nodes: { accountId: string }[] } } | null)?.balances ?? { nodes: [] };
  return nodes.map(({ accountId }) => accountId).sort();
}

const feedFields = 'position cursor reset lagged changes { operation key { accountId } }';

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
}

/** A query over HTTP, as a client sends it. */
async function post(app: Refold, query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${app.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as {
    data?: Record<string, unknown> | null;
    errors?: { message: string; extensions: Record<string, unknown> }[];
    extensions?: { position: string; cursors: Record<string, string> };
  };
}

describe('a fail-over that lost events', () => {
  const expected = [...names('kept', 10), ...names('new', 60)].sort();
  let byLock: Refold;
  let byLease: Refold;
  /** A process that is only a gateway. */
  let gateway: Refold;
  let connected: Feed;
  let list: Feed;
  let row: Feed;
  let keptToken: string;
  let lostToken: string;
  let keptCursor: string;
  let lostCursor: string;

  beforeAll(async () => {
    byLock = await start('advisory');
    byLease = await start('lease');
    gateway = await start('advisory', 'gateway');
    for (const app of [byLock, byLease]) {
      await open(app, 'kept', 10);
      await until(async () => (await accounts(app)).length === 10);
    }
    const kept = await post(gateway, '{ balances { totalCount } }', { 'refold-position': '1' });
    keptToken = kept.extensions?.position ?? '';
    keptCursor = kept.extensions?.cursors.balance ?? '';
    connected = follow(gateway, `balanceChanges { ${feedFields} }`);
    list = follow(gateway, 'balances(first: 100) { position snapshot { accountId } }');
    row = follow(gateway, 'balance(accountId: "kept-1") { accountId }');
    await servers.cutOff();
    await open(byLock, 'lost', 59);
    await open(byLease, 'lost', 60);
    const { data } = await post(
      gateway,
      'mutation { openAccount(input: { accountId: "lost-60", owner: "ada" }) { position balance { accountId } } }',
    );
    lostToken = (data as { openAccount: { position: string } }).openAccount.position;
    for (const app of [byLock, byLease]) {
      await creditKept(app, '10', 'lost');
      await until(async () => (await accounts(app)).length === 70 && (await keptAmount(app)) === '10.00');
    }
    await until(() => connected.rows.size === 70 && row.messages.length > 0 && list.messages.length > 0);
    lostCursor = connected.cursor ?? '';
    await servers.failOver();
    for (const app of [byLock, byLease]) {
      await open(app, 'new', 60);
      await creditKept(app, '1', 'new');
    }
  });

  test.each([
    ['an advisory lock', () => byLock],
    ['a lease', () => byLease],
  ])('a read table whose owner has %s lacks no new event', async (_, app) => {
    await until(async () => {
      const found = await accounts(app());
      return found.length === 70 && found.includes('new-60');
    });
    expect(await accounts(app())).toEqual(expected);
  });

  test.each([
    ['an advisory lock', () => byLock],
    ['a lease', () => byLease],
  ])('a row that a lost event changed is folded from the remaining events; its owner has %s', async (_, app) => {
    const amount = await until(async () => {
      const found = await keptAmount(app());
      return typeof found === 'string' && found !== '0.00' && found;
    });
    expect(amount).toBe('1.00');
  });

  test('a connected feed gets a reset, and ends equal to the table', async () => {
    await until(() => connected.rows.size === 70 && connected.rows.has('new-60'));
    expect([...connected.rows].sort()).toEqual(expected);
    const resets = connected.messages.filter(({ reset }) => reset);
    expect(resets.map(({ lagged }) => lagged)).toEqual([null, 'HISTORY_CHANGED']);
  });

  test('live rows and lists are sent again, with positions of the remaining history', async () => {
    await until(() => list.messages.filter(({ snapshot }) => snapshot !== null).length >= 2);
    await until(() => row.messages.length >= 2);
    expect(row.messages.map(({ accountId }) => accountId)).toEqual(['kept-1', 'kept-1']);
  });

  test('a disconnected feed resumes with a reset and its reason; a feed that saw only remaining events continues', async () => {
    const away = follow(gateway, `balanceChanges(since: "${lostCursor}") { ${feedFields} }`);
    const first = await until(() => away.messages[0]);
    expect(first).toMatchObject({ reset: true, lagged: 'HISTORY_CHANGED' });
    await until(() => away.rows.size === 70);
    const fromPosition = follow(gateway, `balanceChanges(since: "${lostToken}") { ${feedFields} }`);
    expect(await until(() => fromPosition.messages[0])).toMatchObject({ reset: true, lagged: 'HISTORY_CHANGED' });
    const faithful = follow(gateway, `balanceChanges(since: "${keptCursor}") { ${feedFields} }`);
    expect(await until(() => faithful.messages[0])).toMatchObject({ reset: false, lagged: null });
    await until(() => faithful.rows.size === 61); // the new accounts, and the one that was credited
  });

  test('a lost position is refused at once, and a remaining one is reached', async () => {
    const code = 'HISTORY_CHANGED';
    const query = `query @after(position: "${lostToken}") { balance(accountId: "kept-1") { accountId } }`;
    for (const app of [gateway, byLock])
      expect((await post(app, query)).errors?.[0]?.extensions).toMatchObject({ code });
    const byHeader = await post(gateway, '{ balance(accountId: "kept-1") { accountId } }', {
      'refold-after': lostToken,
    });
    expect(byHeader.errors?.[0]?.extensions).toMatchObject({ code, position: lostToken.split('.')[0] });
    expect(keptToken).toMatch(/^\d+\.[0-9a-f]{8}$/);
    const kept = await post(
      gateway,
      `query @after(position: "${keptToken}") { balance(accountId: "kept-1") { accountId } }`,
    );
    expect(kept).toEqual({ data: { balance: { accountId: 'kept-1' } } });
  });

  test('queries of the past use the remaining history, and so do the cursors of a row’s events', async () => {
    const moments = (token: string) => [
      `{ balance(accountId: "kept-1", asOf: { position: "${token}" }) { accountId } }`,
      `{ balanceEvents(accountId: "kept-1", after: "${token}") { nodes { type } } }`,
    ];
    for (const query of moments(lostToken))
      expect((await post(gateway, query)).errors?.[0]?.extensions).toMatchObject({ code: 'HISTORY_CHANGED' });
    for (const query of moments(keptToken)) expect((await post(gateway, query)).errors).toBeUndefined();
    const { data } = await post(gateway, '{ balanceEvents(accountId: "kept-1") { nodes { position } } }');
    const [{ position } = { position: '' }] = (data as { balanceEvents: { nodes: { position: string }[] } })
      .balanceEvents.nodes;
    expect(position).toMatch(/^\d+\.[0-9a-f]{8}$/);
    for (const query of moments(position)) expect((await post(gateway, query)).errors).toBeUndefined();
  });

  test('the log and the metrics report the lost tail', async () => {
    expect(
      said.filter(({ level, msg }) => level >= 50 && msg.startsWith('history has changed')).length,
    ).toBeGreaterThan(0);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/^refold_history_changes_total [1-9]/m);
  });
});
