import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { startLosingServers } from '../support/losing-servers.ts';
import { startOwnServer } from '../support/own-server.ts';
import type { PostgresCluster, PostgresStandby } from '../support/postgres-cluster.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { inStore } from '../support/store-setting.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// A replica that has another history than its primary, or than the log. It may be as far behind as it likes, so the lag excludes none.
let cluster: PostgresCluster;
let standby: PostgresStandby;
let app: Refold | undefined;
const stops: (() => Promise<void>)[] = [];
const said: string[] = [];

beforeEach(async () => {
  cluster = await startOwnServer();
  stops.push(() => cluster.stop());
  standby = await cluster.startStandby(cluster.url);
  stops.push(() => standby.stop());
});
afterEach(async () => {
  await app?.stop();
  for (const stop of stops.splice(0).reverse()) await stop();
  said.splice(0);
});

function start(log: string): Promise<Refold> {
  const config = defineConfig({
    projections: [inStore(balanceV1)],
    database: { url: log },
    readStores: { analytics: { url: cluster.url, readUrl: standby.url, maxReadLag: 600_000 } },
    gateway: { port: 0, positionTimeout: 60_000 },
  });
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  return createRefold(config, { logger });
}

/** Opens accounts, one append each, and retries while no server answers. Returns the last position. */
async function open(refold: Refold, ...ids: string[]): Promise<string> {
  const positions: string[] = [];
  for (const streamId of ids) {
    const events = [{ type: 'Opened', payload: { owner: 'ada' } } as const];
    const appended = await until(() =>
      refold.log.append({ family: account, streamId, events, idempotencyKey: streamId }).catch(() => false as const),
    );
    positions.push(String(appended.position));
  }
  return positions.at(-1) ?? expect.unreachable();
}

/** The accounts; undefined if the query fails. */
async function accounts(refold: Refold, demand = ''): Promise<string[] | undefined> {
  const { data, errors } = await refold.graphql(`query ${demand} { balances(first: 200) { nodes { accountId } } }`);
  if (errors) return undefined;
  return (data as { balances: { nodes: { accountId: string }[] } }).balances.nodes.map(({ accountId }) => accountId);
}

async function sentToReplica(refold: Refold): Promise<number> {
  const text = await (await fetch(`${refold.url}/metrics`)).text();
  return Number(/^refold_replica_operations_total\{server="replica",store="analytics"\} (\d+)$/m.exec(text)?.[1]);
}

async function untilReplicaHas(refold: Refold, count: number): Promise<void> {
  await until(async () => {
    const before = await sentToReplica(refold);
    const found = await accounts(refold);
    return (await sentToReplica(refold)) > before && found?.length === count;
  });
}

async function run(url: string, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ answer: unknown }>(statement);
  await client.end();
  return rows[0]?.answer;
}

async function untilSaid(problem: string): Promise<void> {
  const line = `the replica of the read store 'analytics' is not read from, the primary answers: ${problem}`;
  await until(() => said.includes(line));
}

/** Writes much that concerns no table. */
const written = `select count(pg_logical_emit_message(true, 'test', repeat('x', 1000000))) from generate_series(1, 8)`;

test('a replica is not used any more when its primary was restored to an older disk, on the same timeline', async () => {
  const log = await createTestDatabase();
  stops.unshift(() => log.drop());
  const refold = await start(log.url);
  app = refold;
  await open(refold, 'a');
  await untilReplicaHas(refold, 1);
  const copy = `${cluster.dataDirectory}-copy`;
  await cluster.kill();
  execFileSync('cp', ['-a', cluster.dataDirectory, copy]);
  await cluster.restart();
  await open(refold, 'b', 'c');
  await run(cluster.url, written);
  await untilReplicaHas(refold, 3);

  await cluster.kill();
  rmSync(cluster.dataDirectory, { recursive: true });
  execFileSync('mv', [copy, cluster.dataDirectory]);
  await cluster.restart();
  await untilSaid('it has replayed more than the primary has written: another history');
  const sent = await sentToReplica(refold);
  await open(refold, 'd');
  await until(async () => (await accounts(refold))?.length === 4);
  // From here on, the primary has written more than the replica has replayed.
  await run(cluster.url, written);
  await run(cluster.url, written);
  await untilSaid('it is more than 600000 ms behind the primary');
  await open(refold, 'e');
  await until(async () => (await accounts(refold))?.length === 5);
  expect(await sentToReplica(refold)).toBe(sent);
});

test('a replica with rows of events that the log has lost is not used until it has what replaced them', async () => {
  const logs = await startLosingServers(['log']);
  stops.unshift(() => logs.stop());
  const refold = await start(logs.url('log'));
  app = refold;
  await open(refold, 'kept');
  await logs.cutOff();
  await open(refold, ...Array.from({ length: 60 }, (_, number) => `lost-${number}`));
  await untilReplicaHas(refold, 61);
  await run(standby.url, 'select pg_wal_replay_pause()');
  await until(async () => (await run(standby.url, 'select pg_get_wal_replay_pause_state() as answer')) === 'paused');
  await logs.failOver();
  const position = await open(refold, 'new-1', 'new-2', 'new-3');
  const demand = `@after(position: "${position}")`;
  await untilSaid('it has rows of events that the log does not have: another history');

  const [stopped] = await until(async () => {
    const status = await refold.status();
    return status[0]?.error?.code === 'HISTORY_CHANGED' && status;
  });
  // The replica's checkpoint, of lost events, is beyond the position.
  expect(stopped?.position).toBe(0n);
  const sent = await sentToReplica(refold);
  expect(await accounts(refold, demand)).toBeUndefined();
  const request = { actor: 'test', reason: 'to see', inPlace: true, wait: true };
  await refold.rebuilds.request('balance@1', request);
  const expected = ['kept', 'new-1', 'new-2', 'new-3'];
  expect(await until(() => accounts(refold, demand))).toEqual(expected);
  expect(await accounts(refold)).toEqual(expected);
  expect(await sentToReplica(refold)).toBe(sent);

  await run(standby.url, 'select pg_wal_replay_resume()');
  await untilReplicaHas(refold, 4);
  expect(said).toContain("the replica of the read store 'analytics' is read from again");
});
