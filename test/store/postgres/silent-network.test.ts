import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications } from '../../../src/store/postgres/notifications.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { account, deposited } from '../log/families.ts';

let testDatabase: TestDatabase;
let direct: Database;
let proxy: TcpProxy;
const closes: (() => Promise<void>)[] = [];
beforeAll(async () => {
  testDatabase = await createTestDatabase({ role: 'superuser' }); // makes tables of its own
  direct = createDatabase({ url: testDatabase.url });
});
beforeEach(async () => {
  proxy = await startTcpProxy(Number(new URL(testDatabase.url).port));
});
afterEach(async () => {
  proxy.resume();
  for (const close of closes.splice(0)) await close();
  await proxy.close();
});
afterAll(async () => {
  await direct.close();
  await testDatabase.drop();
});

function behindProxy(options: Partial<Parameters<typeof createDatabase>[0]> = {}): Database {
  const db = createDatabase({ url: proxy.through(testDatabase.url), ...options });
  closes.push(() => db.close());
  return db;
}

/** Opens so many connections and returns them to the pool. */
async function warm(db: Database, connections: number): Promise<void> {
  const sessions = await Promise.all(Array.from({ length: connections }, () => db.session()));
  for (const session of sessions) session.release();
}

test.for([
  { pipeline: false },
  { pipeline: true },
])('a statement on a silent connection fails, and the next statements use new connections: %o', async ({
  pipeline,
}) => {
  const db = behindProxy({ pipeline, answerTimeoutMs: 200 });
  await warm(db, 4);
  proxy.swallowOpen();
  await expect(db.query({ text: 'select 1' })).rejects.toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining('the server sent nothing for 200 ms'),
  });
  // The other connections were silent, too, so none of them is tried.
  expect(db.pool.idleCount).toBe(0);
  expect(await db.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }]);
});

test.for([{ sessions: true }, { sessions: false }])('a long statement is not interrupted: %o', async ({ sessions }) => {
  const db = behindProxy({ answerTimeoutMs: 20, applicationName: 'refold-patient', sessions });
  const asked = () =>
    direct.query({ text: `select from pg_stat_activity where application_name = 'refold-patient-probe'` });
  const holder = await direct.session();
  await holder.query({ text: 'select pg_advisory_lock(815)' });
  const slow = db.query({ text: 'select 1 as one from pg_advisory_lock(815)' });
  await until(async () => (await asked()).length > 0);
  await until(async () => (await asked()).length === 0);
  await until(async () => (await asked()).length > 0);
  await holder.query({ text: 'select pg_advisory_unlock(815)' });
  holder.release();
  expect(await slow).toEqual([{ one: 1 }]);
});

test('a silent connection behind a pooler is closed while another one works on a long statement', async () => {
  const db = behindProxy({ answerTimeoutMs: 200, sessions: false });
  const holder = await direct.session();
  await holder.query({ text: 'select pg_advisory_lock(816)' });
  const slow = direct.query({ text: 'select 1 as one from pg_advisory_lock(816)' });
  await warm(db, 2);
  proxy.swallowOpen();
  const long = `select 1 as one -- ${'ö'.repeat(2000)}`;
  for (const text of ['select 1 as one', long]) {
    // From the second interval on, other statements are as old as the silence.
    await expect(db.query({ text })).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    await warm(db, 2);
    proxy.swallowOpen();
  }
  await holder.query({ text: 'select pg_advisory_unlock(816)' });
  holder.release();
  expect(await slow).toEqual([{ one: 1 }]);
});

test('an append without a response may be written: its key tells, and the queue continues', async () => {
  const db = behindProxy({ answerTimeoutMs: 200 });
  const log = createEventLog(db, [account]);
  const append = (streamId: string, idempotencyKey?: string) =>
    log.append({ family: account, streamId, events: [deposited(1)], ...(idempotencyKey ? { idempotencyKey } : {}) });
  await append('warm');
  proxy.swallowOpen();
  await expect(append('swallowed')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(await append('swallowed')).toMatchObject({ streams: [{ version: 1 }] });
  const cut = proxy.cutAfter((chunk) => chunk.includes('answer lost'));
  await expect(append('answer lost', 'key')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await cut;
  await until(async () => (await createEventLog(direct, [account]).streamVersion(account, 'answer lost')) === 1);
  expect(await append('answer lost', 'key')).toMatchObject({ duplicate: true });
});

test('nothing is written if no connection is available', async () => {
  const db = behindProxy({ connectTimeoutMs: 200 });
  const log = createEventLog(db, [account]);
  proxy.swallow();
  const refused = log.append({ family: account, streamId: 'never', events: [deposited(1)] });
  await expect(refused).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE', fields: { sent: false } });
});

test('a commit whose response is lost may have happened; nothing uncommitted has been written', async () => {
  const db = behindProxy();
  await direct.query({ text: 'create table if not exists items (id int primary key)' });
  const cut = proxy.cutAfter((chunk) => chunk.includes('commit\0'));
  const lost = db.transaction((tx) => tx.query({ text: 'insert into items values (1)' }));
  await expect(lost).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await cut;
  await until(async () => (await direct.query({ text: 'select id from items' })).length === 1);
  const cutBefore = proxy.cutAfter((chunk) => chunk.includes('insert'));
  const rolledBack = db.transaction((tx) => tx.query({ text: 'insert into items values (2)' }));
  await expect(rolledBack).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE', fields: { sent: false } });
  await cutBefore;
});

test('a listener whose connection is silent listens through a new one', async () => {
  const notifications = createNotifications({
    url: proxy.through(testDatabase.url),
    minBackoffMs: 1,
    answerTimeoutMs: 500,
  });
  closes.push(() => notifications.close());
  const heard: (string | undefined)[] = [];
  notifications.on('silence', (payload) => heard.push(payload));
  await until(() => heard.length >= 1);
  proxy.swallowOpen();
  await until(() => heard.length >= 2);
  await direct.query({ text: `select pg_notify('silence', 'again')` });
  await until(() => heard.includes('again'));
});

test('closing does not wait for a silent server', async () => {
  const notifications = createNotifications({ url: proxy.through(testDatabase.url) });
  const listening = new Promise<void>((resolve) => notifications.on('silence', () => resolve()));
  const db = behindProxy();
  await warm(db, 2);
  await listening;
  proxy.swallow();
  await notifications.close();
  await db.close();
});

test('a read-only session is discarded: nothing is written, and the next append uses another session', async () => {
  const db = behindProxy({ maxConnections: 1 });
  const log = createEventLog(db, [account]);
  const append = () => log.append({ family: account, streamId: 'read only', events: [deposited(1)] });
  await db.query({ text: 'set default_transaction_read_only = on' });
  await expect(append()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  expect(await append()).toMatchObject({ streams: [{ version: 1 }] });
});
