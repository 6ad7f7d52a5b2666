import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Config, createRefold, defineConfig, defineProjection, type Refold, t } from '../../src/index.ts';
import { examineReplicas } from '../../src/runtime/monitoring/examine-replicas.ts';
import { openOperatorStores } from '../../src/runtime/stores/operator-stores.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster, PostgresStandby } from '../support/postgres-cluster.ts';
import { account, balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { inStore } from '../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let kind: 'log' | 'store';
/** The server of the read models, and its replica. */
let cluster: PostgresCluster;
let standby: PostgresStandby;
/** The database of the log, if it is another one. */
let log: TestDatabase | undefined;
/** Accepts a replica however far behind it is. */
let patient: Refold;
/** Accepts it only if it is hardly behind. */
let hurried: Refold;
const said: string[] = [];

/** With the log, whatever store has the others. */
const activityV1 = defineProjection({
  name: 'activity',
  version: 1,
  events: account,
  table: { accountId: t.text().primaryKey(), credits: t.integer() },
  key: (event) => event.streamId,
  evolve: { Credited: (row) => ({ credits: (row?.credits ?? 0) + 1 }) },
});

/** What holds for a replica of the log's database, and of a store apart from it. Called at the top of a test file. */
export function replicaContract(of: 'log' | 'store'): void {
  kind = of;
  beforeAll(startAll);
  afterAll(stopAll);
  choosesByPosition();
  survivesFailures();
}

async function startAll(): Promise<void> {
  // A worker loads this module once for all of its test files.
  said.length = 0;
  log = kind === 'store' ? await createTestDatabase() : undefined;
  cluster = await startOwnServer();
  standby = await cluster.startStandby(cluster.url);
  patient = await start('all', 600_000);
  hurried = await start('gateway', 50);
  await patient.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'ada' } }] });
  await until(async () => (await amountOf(patient)) === '0.00');
}

async function stopAll(): Promise<void> {
  await hurried?.stop();
  await patient?.stop();
  await standby?.stop();
  await cluster?.stop();
  await log?.drop();
}

function start(role: 'all' | 'gateway', maxReadLag: number): Promise<Refold> {
  const config = configOf(role === 'all' ? standby.url : anyStandby(), maxReadLag);
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  return createRefold(config, { role, logger });
}

function configOf(readUrl: string, maxReadLag: number): Config {
  const place = { url: cluster.url, readUrl, maxReadLag };
  return defineConfig({
    projections: [...[balanceV1, openingsV1].map((one) => (log ? inStore(one) : one)), activityV1],
    commands: [openAccount, credit],
    ...(log ? { database: { url: log.url }, readStores: { analytics: place } } : { database: place }),
    gateway: { port: 0, positionTimeout: 300_000, acrossStores: true },
  });
}

/** A URL of both servers, the first of which is not a standby. */
function anyStandby(): string {
  const [primary, second] = [cluster, standby].map(({ url }) => new URL(url));
  return String(primary)
    .replace(String(primary?.host), `${primary?.host},${second?.host}`)
    .concat('?target_session_attrs=standby');
}

async function answer<T>({ graphql }: Refold, source: string): Promise<T> {
  const { data, errors } = await graphql(source);
  expect(errors?.map(({ message, originalError }) => originalError?.message ?? message)).toBeUndefined();
  return JSON.parse(JSON.stringify(data));
}

async function amountOf(refold: Refold, demand = ''): Promise<string | undefined> {
  const { balance } = await answer<{ balance: { amount: string } | null }>(
    refold,
    `query ${demand} { balance(accountId: "a") { amount } }`,
  );
  return balance?.amount;
}

/** Writes what the replica does not have yet, and returns the position. */
async function credited(amount: string): Promise<string> {
  const events = [{ type: 'Credited', payload: { amount } } as const];
  const { position } = await patient.log.append({ family: account, streamId: 'a', events });
  return String(position);
}

async function onStandby(statement: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: standby.url });
  await client.connect();
  const { rows } = await client.query<{ answer?: string }>(statement);
  await client.end();
  return rows[0]?.answer;
}

/** A query over HTTP, as a client sends it. */
async function post(query: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${patient.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data: unknown; extensions?: object };
}

async function sentTo(refold: Refold, server: 'replica' | 'primary'): Promise<number> {
  const text = await (await fetch(`${refold.url}/metrics`)).text();
  const labels = `server="${server}"${log ? ',store="analytics"' : ''}`;
  return Number(new RegExp(`^refold_replica_operations_total\\{${labels}\\} (\\d+)$`, 'm').exec(text)?.[1]);
}

/**
 * The primary answers if the replica did not respond in time. On a busy machine this may happen at any moment, and is not a failure.
 *
 * Waits until a query is sent to the replica and to nothing else; with `amount`, until it also returns this amount.
 */
async function untilReplicaAnswers(refold: Refold, amount?: string): Promise<void> {
  await until(async () => {
    const before = await sentTo(refold, 'replica');
    const answered = await amountOf(refold);
    return (await sentTo(refold, 'replica')) > before && (amount === undefined || answered === amount);
  });
}

/** From here on, the replica gets no newer. */
async function pauseReplay(): Promise<void> {
  await onStandby('select pg_wal_replay_pause()');
  await until(async () => (await onStandby('select pg_get_wal_replay_pause_state() as answer')) === 'paused');
}

async function examined(readUrl: string) {
  const config = configOf(readUrl, 1000);
  const { stores, close } = openOperatorStores(config, log?.url ?? cluster.url, { applicationName: 'test' });
  const [finding, ...more] = await examineReplicas(config, stores);
  await close();
  expect(more).toEqual([]);
  return finding ?? expect.unreachable();
}

function choosesByPosition(): void {
  test('the replica answers a query; the primary answers it if it demands a position that the replica lacks', async () => {
    const before = '0.00';
    await untilReplicaAnswers(patient, before);
    await pauseReplay();
    const position = await credited('7.50');
    // From the primary, which waits for its processor.
    expect(await amountOf(patient, `@after(position: "${position}")`)).toBe('7.50');
    await untilReplicaAnswers(patient, before);
    const both = `{ balance(accountId: "a") { amount } balances { totalCount nodes { amount } } openingsListAggregate { count } }`;
    expect(await answer(patient, `query @after(position: "${position}") ${both}`)).toMatchObject({
      balance: { amount: '7.50' },
      balances: { totalCount: 1, nodes: [{ amount: '7.50' }] },
    });
    await expect
      .poll(() => answer(patient, both))
      .toMatchObject({
        balance: { amount: before },
        balances: { nodes: [{ amount: before }] },
      });
    // A payload includes the command's own write.
    expect(
      await answer(
        patient,
        'mutation { credit(input: { accountId: "a", amount: "1" }) { balance { amount } query { balance(accountId: "a") { amount } } } }',
      ),
    ).toEqual({ credit: { balance: { amount: '8.50' }, query: { balance: { amount: '8.50' } } } });
    // The process that requires a fresh replica does not use it.
    await until(async () => (await amountOf(hurried)) === '8.50');
    await onStandby('select pg_wal_replay_resume()');
    await until(async () => (await amountOf(patient)) === '8.50');
  });

  test('the replica answers for a position that it has, without the primary', async () => {
    const position = await credited('1.00');
    await untilReplicaAnswers(patient, '9.50');
    await pauseReplay();
    await credited('5.00');
    await expect.poll(() => amountOf(patient, `@after(position: "${position}")`)).toBe('9.50');
    await onStandby('select pg_wal_replay_resume()');
    await until(async () => (await amountOf(patient)) === '14.50');
  });

  test('each store has its own snapshot, and responses that name their position come from the primaries', async () => {
    const all = '{ balance(accountId: "a") { amount } activity(accountId: "a") { credits } }';
    const before = { balance: { amount: '14.50' }, activity: { credits: 4 } };
    await untilReplicaAnswers(patient, '14.50');
    await until(async () => {
      const sent = await sentTo(patient, 'replica');
      const same = isDeepStrictEqual(await answer(patient, all), before);
      return same && (await sentTo(patient, 'replica')) > sent;
    });
    await pauseReplay();
    const position = await credited('2.00');
    const after = { balance: { amount: '16.50' }, activity: { credits: 5 } };
    // The position is in each store that the response reads.
    expect(await answer(patient, `query @after(position: "${position}") ${all}`)).toEqual(after);
    await expect.poll(() => answer(patient, all)).toEqual({ ...before, ...(log ? { activity: after.activity } : {}) });
    // A compiled query.
    await expect
      .poll(() => post('{ balance(accountId: "a") { amount } }'))
      .toEqual({ data: { balance: before.balance } });
    const { data, extensions } = await post(all, { 'refold-position': '1', 'refold-after': position });
    expect(data).toEqual(after);
    expect(JSON.stringify(extensions)).toContain(`"${position}.`);
    await onStandby('select pg_wal_replay_resume()');
    await untilReplicaAnswers(patient, '16.50');
    await credited('-2.00');
    await untilReplicaAnswers(patient, '14.50');
  });
}

function survivesFailures(): void {
  test('no query fails when the replica is killed during it; once it is back, it is used again', async () => {
    await untilReplicaAnswers(patient);
    let over = false;
    let answered = 0;
    const asking = Array.from({ length: 4 }, async (_, index) => {
      while (!over) {
        const { balances } = await answer<{ balances: { totalCount: number } }>(
          patient,
          index % 2 === 0
            ? '{ balance(accountId: "a") { amount } balances { totalCount nodes { amount } } openingsListAggregate { count } }'
            : '{ balances { totalCount } }',
        );
        expect(balances.totalCount).toBe(1);
        answered++;
      }
    });
    await until(() => answered > 20);
    await standby.kill();
    const before = answered;
    await until(() => answered > before + 40);
    over = true;
    await Promise.all(asking);
    const position = await credited('0.50');
    expect(await amountOf(patient, `@after(position: "${position}")`)).toBe('15.00');
    await standby.restart();
    await untilReplicaAnswers(patient);
  });

  test('refold doctor says whether the replica can be used', async () => {
    const name = log ? "he replica of the read store 'analytics'" : 'he replica';
    await until(async () => {
      const { kind, message } = await examined(standby.url);
      return kind === 'ok' && message === `T${name} has replayed everything.`;
    });
    expect(await examined(cluster.url)).toMatchObject({
      kind: 'problem',
      message: `T${name} is not read from: it is no standby: it was promoted, or never was one.`,
    });
    const other = new URL(standby.url);
    other.pathname = '/postgres';
    expect(await examined(other.href)).toMatchObject({
      kind: 'problem',
      message: expect.stringContaining('is not read from: '),
    });
    expect(said.some((line) => line.startsWith(`t${name} is not read from, the primary answers: `))).toBe(true);
  });

  test('a promoted replica is not used any more', async () => {
    await untilReplicaAnswers(patient);
    await onStandby('select pg_promote()');
    await credited('85.00');
    await until(async () => {
      const before = await sentTo(patient, 'replica');
      const answered = await amountOf(patient);
      return answered === '100.00' && (await sentTo(patient, 'replica')) === before;
    });
  });
}
