import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { globalPosition } from '../../src/events/global-position.ts';
import { createRefold, defineConfig, defineReactor, type Refold } from '../../src/index.ts';
import { requestRebuild } from '../../src/runtime/rebuilds/rebuild.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type Feed, followFeed } from '../support/feed-client.ts';
import { inlineBalance } from '../support/inline-domain.ts';
import { startOwnServer } from '../support/own-server.ts';
import { type PostgresCluster, serverAccount } from '../support/postgres-cluster.ts';
import { account, balanceV1, credit, openAccount } from '../support/sample-domain.ts';
import { until } from '../support/until.ts';

let cluster: PostgresCluster;
/** The folder of archived write-ahead log. */
let archive: string;
let db: Database;
let app: Refold;
const feeds: Feed[] = [];
const said: { level: number; msg: string }[] = [];
const opened = { type: 'Opened', payload: { owner: 'ada' } } as const;
const by = { actor: 'test', reason: 'to see' };

const greeter = defineReactor({
  name: 'greeter',
  events: account,
  handle: { Opened: async () => 'ack' as const },
  from: 'beginning',
});

beforeAll(async () => {
  archive = mkdtempSync(join(tmpdir(), 'refold-archive-'));
  const { uid, gid } = serverAccount();
  if (uid !== undefined && gid !== undefined) chownSync(archive, uid, gid);
  const settings = { archive_mode: 'on', archive_command: `cp %p ${archive}/%f` };
  cluster = await startOwnServer({ settings });
  db = createDatabase({ url: cluster.url });
  app = await start();
});
afterEach(async () => {
  for (const feed of feeds.splice(0)) await feed.stop();
});
afterAll(async () => {
  await app?.stop();
  await db?.close();
  await cluster?.stop();
  rmSync(archive, { recursive: true, force: true });
});

function start(): Promise<Refold> {
  const config = defineConfig({
    projections: [balanceV1, inlineBalance],
    commands: [openAccount, credit],
    reactors: [greeter],
    database: { url: cluster.url },
    gateway: { port: 0, positionTimeout: 300_000 },
  });
  const logger = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line)) });
  return createRefold(config, { logger });
}

async function open(...ids: string[]): Promise<void> {
  for (const streamId of ids) {
    const events = [opened];
    await until(() =>
      app.log.append({ family: account, streamId, events, idempotencyKey: streamId }).catch(() => false),
    );
  }
}

async function accounts(): Promise<string[]> {
  return rowsOf('balances');
}

async function rowsOf(field: 'balances' | 'inlineBalances'): Promise<string[]> {
  const { data } = await app.graphql(`{ ${field}(first: 200) { nodes { accountId } } }`);
  const { nodes } = (data as Record<string, { nodes: { accountId: string }[] }> | null)?.[field] ?? { nodes: [] };
  return nodes.map(({ accountId }) => accountId).sort();
}

async function untilAccounts(...ids: string[]): Promise<void> {
  await until(async () => (await accounts()).join() === [...ids].sort().join());
}

/** Like `untilAccounts`, also for the inline version, which must join the appends again. */
async function untilAllAccounts(...ids: string[]): Promise<void> {
  await untilAccounts(...ids);
  await until(async () => (await rowsOf('inlineBalances')).join() === [...ids].sort().join());
  await until(async () => (await app.status()).every(({ inline }) => inline === null || inline === 'live'));
}

function follow(): Feed {
  const feed = followFeed(
    `${app.url}/graphql`,
    'balanceChanges { cursor reset lagged changes { operation key { accountId } } }',
  );
  feeds.push(feed);
  return feed;
}

async function cuts(): Promise<string | undefined> {
  const metrics = await (await fetch(`${app.url}/metrics`)).text();
  return /^refold_history_changes_total (\d+)$/m.exec(metrics)?.[1];
}

/** Deletes the events from the first of a stream on, and resets the sequence, as if only the log was restored from an older backup. */
async function restoreLog(firstLost: string): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query({ text: 'alter table refold.events disable trigger events_are_immutable' });
    await tx.query({
      text: `
        delete from refold.events
        where position >= (select min(position) from refold.events where stream_id = $1)`,
      values: [firstLost],
    });
    await tx.query({ text: 'delete from refold.streams where stream_id not in (select stream_id from refold.events)' });
    await tx.query({ text: 'delete from refold.append_keys' });
    await tx.query({ text: "select setval('refold.events_position_seq', (select max(position) from refold.events))" });
    await tx.query({ text: 'alter table refold.events enable trigger events_are_immutable' });
  });
}

test('a restart of the server, and a crash without loss, reset no client', async () => {
  await open('a', 'b');
  await untilAccounts('a', 'b');
  const feed = follow();
  await until(() => feed.rows.size === 2);
  await cluster.restart('fast');
  await open('c');
  await untilAccounts('a', 'b', 'c');
  await cluster.restart('immediate');
  await open('d');
  await untilAccounts('a', 'b', 'c', 'd');
  await until(() => feed.rows.size === 4);
  expect(feed.messages.map(({ reset }) => reset)).toEqual([true, ...feed.messages.slice(1).map(() => false)]);
  expect(await cuts()).toBe('0');
});

test('a disk restored to an earlier state, on the same timeline, is noticed', async () => {
  const copy = `${cluster.dataDirectory}-copy`;
  await cluster.kill();
  copyFolder(cluster.dataDirectory, copy);
  await cluster.restart();
  await open('lost-1', 'lost-2', 'lost-3');
  await untilAccounts('a', 'b', 'c', 'd', 'lost-1', 'lost-2', 'lost-3');
  const feed = follow();
  await until(() => feed.rows.size === 7);
  await cluster.kill();
  rmSync(cluster.dataDirectory, { recursive: true });
  copyFolder(copy, cluster.dataDirectory);
  rmSync(copy, { recursive: true });
  await cluster.restart();
  await open('e', 'f', 'g', 'h');
  await untilAllAccounts('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  await until(() => feed.rows.size === 8);
  expect([...feed.rows].sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  expect(feed.messages.filter(({ lagged }) => lagged === 'HISTORY_CHANGED').length).toBe(1);
  expect(Number(await cuts())).toBeGreaterThan(0);
});

test('a restore to a point in time, from a base backup and archived write-ahead log, is noticed', async () => {
  const before = await accounts();
  const backup = `${cluster.dataDirectory}-backup`;
  await cluster.kill();
  copyFolder(cluster.dataDirectory, backup);
  await cluster.restart();
  await open('kept-1', 'kept-2');
  await untilAccounts(...before, 'kept-1', 'kept-2');
  await db.query({ text: "select pg_create_restore_point('before the mistake')" });
  await open('gone-1', 'gone-2', 'gone-3');
  const feed = follow();
  await until(() => feed.rows.size === before.length + 5);
  const [{ file } = { file: '' }] = await db.query<{ file: string }>({
    text: 'select pg_walfile_name(pg_switch_wal()) as file',
  });
  await until(async () => {
    const [found] = await db.query<{ last: string | null }>({
      text: 'select last_archived_wal as last from pg_stat_archiver',
    });
    return (found?.last ?? '') >= file;
  });

  await cluster.kill();
  rmSync(cluster.dataDirectory, { recursive: true });
  renameSync(backup, cluster.dataDirectory);
  writeFileSync(join(cluster.dataDirectory, 'recovery.signal'), '');
  const recovery = [
    `restore_command = 'cp ${archive}/%f %p'`,
    `recovery_target_name = 'before the mistake'`,
    `recovery_target_action = 'promote'`,
  ];
  appendFileSync(join(cluster.dataDirectory, 'postgresql.auto.conf'), `${recovery.join('\n')}\n`);
  await cluster.restart();
  const expected = [...before, 'kept-1', 'kept-2', 'next-1', 'next-2', 'next-3', 'next-4'];
  await open('next-1', 'next-2', 'next-3', 'next-4');
  await untilAllAccounts(...expected);
  await until(() => [...feed.rows].sort().join() === [...expected].sort().join());
  expect(feed.messages.some(({ lagged }) => lagged === 'HISTORY_CHANGED')).toBe(true);
  const [{ timeline } = { timeline: '' }] = await db.query<{ timeline: string }>({
    text: 'select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline',
  });
  expect(timeline).toBe('00000002');
});

test.each([
  ['beyond the end of the log', 'is beyond the end of the log', []],
  ['of events that the log no longer has', 'holds other events', ['y1', 'y2', 'y3', 'y4']],
])('a checkpoint %s is stopped and named until a rebuild', async (_, words, others) => {
  const before = await accounts();
  await open('x1', 'x2', 'x3');
  await untilAccounts(...before, 'x1', 'x2', 'x3');
  await until(async () => (await app.reactors.status())[0]?.lag === 0n);
  await app.stop();
  await restoreLog('x1');
  const writer = createEventLog(db, [account]);
  for (const streamId of others) await writer.append({ family: account, streamId, events: [opened] });

  app = await start();
  const held = await until(async () => {
    const [status] = await app.status();
    return status?.processor === 'stopped' && status;
  });
  expect(held.error?.message).toContain(words);
  expect(held.error?.message).toContain('refold rebuild balance@1');
  const [reactor] = await until(async () => {
    const status = await app.reactors.status();
    return status[0]?.state === 'stopped' && status;
  });
  expect(reactor?.error?.message).toContain('refold reactor rewind greeter');
  await until(() => said.some(({ level, msg }) => level >= 50 && msg.includes(words))); // it is logged after it is recorded
  const metrics = await (await fetch(`${app.url}/metrics`)).text();
  expect(metrics).toMatch(/^refold_processor_stopped\{projection="balance",version="1"\} 1$/m);

  // Nothing continues, and no client is told that it did.
  const position = (await app.log.append({ family: account, streamId: `z-${others.length}`, events: [opened] }))
    .position;
  const answer = await app.graphql(`query @after(position: "${position}") { balances { totalCount } }`);
  expect(answer.errors?.[0]?.extensions).toMatchObject({ code: 'POSITION_TIMEOUT', stopped: true });
  expect((await accounts()).includes('x3')).toBe(true);

  await requestRebuild(db, balanceV1, 'read_models', by);
  await untilAccounts(...before, ...others, `z-${others.length}`);
  await app.reactors.rewind('greeter', globalPosition(0n), by);
  await until(async () => (await app.reactors.status())[0]?.lag === 0n);
  // After a rebuild it is idle until it is claimed again.
  await until(async () => (await app.status())[0]?.processor === 'running');
  expect((await app.status())[0]?.error).toBeNull();
});

/** With owners and permissions, because the server requires them. */
function copyFolder(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
}
