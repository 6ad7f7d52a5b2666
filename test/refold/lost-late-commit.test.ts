import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { takeSnapshot } from '../../src/runtime/rebuilds/table-snapshots.ts';
import { createEventLog } from '../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type LosingServers, startLosingServers } from '../support/losing-servers.ts';
import { account, balanceV1 } from '../support/sample-domain.ts';
import { inStore } from '../support/store-setting.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

// Of two appends, the one with the lower position commits later, and the log fails over to a standby that has only the first commit. So the last
// event that the read store has taken in is still there, and one before it is not.
const step = { actor: 'test', reason: 'to see' };
const opened = { type: 'Opened', payload: { owner: 'ada' } } as const;

let servers: LosingServers;
let database: TestDatabase;
let store: Database;
let app: Refold;

beforeEach(async () => {
  servers = await startLosingServers(['log']);
  database = await createTestDatabase();
  store = createDatabase({ url: database.url });
  const config = defineConfig({
    projections: [inStore(balanceV1)],
    database: { url: servers.url('log') },
    readStores: { analytics: { url: database.url } },
  });
  app = await createRefold(config, { logger: pino({ level: 'silent' }), role: 'worker' });
});
afterEach(async () => {
  await app.stop();
  await store.close();
  await database.drop();
  await servers.stop();
});

/** Opens an account, and tries again while no server answers. */
async function open(streamId: string): Promise<void> {
  await until(() =>
    app.log.append({ family: account, streamId, events: [opened], idempotencyKey: streamId }).catch(() => false),
  );
}

async function accounts(): Promise<string[]> {
  const [found] = await store.query<{ name: string }>({
    text: `select table_name as name from refold.projections where name = 'balance'`,
  });
  const rows = await store.query<{ id: string }>({
    text: `select account_id as id from read_models.${found?.name} order by account_id`,
  });
  return rows.map(({ id }) => id);
}

const untilThere = (...ids: string[]) => until(async () => (await accounts()).join() === ids.join());

/** Appends one event in a transaction that commits after a later append. The standby has only that one. */
async function loseLateCommit(late: string, early: string): Promise<void> {
  const db = createDatabase({ url: servers.url('log') });
  await db.transaction(async (tx) => {
    await createEventLog(db, [account]).append({ family: account, streamId: late, events: [opened] }, tx);
    await open(early);
    await servers.cutOff();
  });
  await db.close();
}

test('a read store notices a lost event before the last one that it has taken in, and its snapshots do, too', async () => {
  await open('a');
  await until(async () => (await app.status())[0]?.state === 'active');
  await untilThere('a');
  const snapshot = { db: store, readSchema: 'read_models', name: 'balance', version: 1 };
  const older = await takeSnapshot(snapshot, step);
  await loseLateCommit('lost', 'kept');
  await untilThere('a', 'kept', 'lost');
  await takeSnapshot(snapshot, step);

  await servers.failOver();
  await open('new');
  const error = await until(async () => {
    const [{ error, position } = { error: null, position: 0n }] = await app.status();
    return error ?? (position > 0n && (await accounts()).includes('new') && 'nothing was noticed');
  });
  expect(error).toMatchObject({ code: 'HISTORY_CHANGED' });

  const refused = app.rebuilds.request('balance@1', { ...step, from: 'latest' });
  await expect(refused).rejects.toThrow('whose rows have taken in events that the log has lost');
  await app.rebuilds.request('balance@1', { ...step, from: { id: older.id } });
  await untilThere('a', 'kept', 'new');
});

test('a fail-over that lost nothing stops nothing, and its events are counted once', async () => {
  await open('a');
  await untilThere('a');
  const before = await anchor();
  await servers.failOver();
  // Without a new event.
  const after = await until(async () => {
    const found = await anchor();
    return found !== before && found;
  });
  const withoutStart = (text: string) => text.replace(/[^.]*$/, '');
  expect(withoutStart(after)).toBe(withoutStart(before));
  await open('b');
  await untilThere('a', 'b');
  expect((await app.status())[0]?.error ?? null).toBeNull();
});

/** The anchor of the version's checkpoint, with the start of the server in which its events were counted last. */
async function anchor(): Promise<string> {
  const [found] = await store.query<{ anchor: string }>({ text: 'select anchor from refold.processors' });
  return found?.anchor ?? expect.unreachable();
}
