import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster, PostgresStandby } from '../support/postgres-cluster.ts';
import { account, balanceV1, credit, openAccount, openingsV1 } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

let cluster: PostgresCluster;
let standby: PostgresStandby;
/** Accepts a replica however far behind it is. */
let patient: Refold;
/** Accepts it only if it is hardly behind. */
let hurried: Refold;

beforeAll(async () => {
  cluster = await startOwnServer();
  standby = await cluster.startStandby(cluster.url);
  patient = await start('all', 600_000);
  hurried = await start('gateway', 50);
  await patient.log.append({ family: account, streamId: 'a', events: [{ type: 'Opened', payload: { owner: 'ada' } }] });
  await until(async () => (await amountOf(patient)) === '0.00');
});
afterAll(async () => {
  await hurried?.stop();
  await patient?.stop();
  await standby?.stop();
  await cluster?.stop();
});

function start(role: 'all' | 'gateway', maxReadLag: number): Promise<Refold> {
  const config = defineConfig({
    projections: [balanceV1, openingsV1],
    commands: [openAccount, credit],
    database: { url: cluster.url, readUrl: role === 'all' ? standby.url : anyStandby(), maxReadLag },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  return createRefold(config, { role });
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

async function sentTo(refold: Refold, server: 'replica' | 'primary'): Promise<number> {
  const text = await (await fetch(`${refold.url}/metrics`)).text();
  return Number(new RegExp(`^refold_replica_operations_total\\{server="${server}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
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
