import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEventLog } from '../../../src/store/event-log.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications, type Notifications } from '../../../src/store/postgres/notifications.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { account, deposited } from '../log/families.ts';

let testDatabase: TestDatabase;
let db: Database;
let notifications: Notifications;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url });
  notifications = createNotifications({ url: testDatabase.url, minBackoffMs: 1 });
});
afterAll(async () => {
  await notifications.close();
  await db.close();
  await testDatabase.drop();
});

/** Collects what a channel delivers, in order. */
function listen(channel: string): { next(): Promise<string | undefined>; end(): void } {
  const arrived: (string | undefined)[] = [];
  let ring = () => {};
  const end = notifications.on(channel, (payload) => {
    arrived.push(payload);
    ring();
  });
  const next = async () => {
    while (arrived.length === 0) await new Promise<void>((resolve) => (ring = resolve));
    return arrived.shift();
  };
  return { next, end };
}

const notify = (channel: string, payload: string) =>
  db.query({ text: 'select pg_notify($1, $2)', values: [channel, payload] });
const listeners = () =>
  db.query<{ pid: number }>({
    text: `select pid from pg_stat_activity where datname = current_database() and application_name = 'refold-listen'`,
  });

test('each listener is notified once listening has begun, and then receives every payload of its channel', async () => {
  const [one, other] = [listen('one'), listen('Other "channel"')];
  expect(await one.next()).toBeUndefined();
  expect(await other.next()).toBeUndefined();
  await notify('one', 'a');
  await notify('Other "channel"', 'b');
  await notify('one', 'c');
  expect([await one.next(), await one.next(), await other.next()]).toEqual(['a', 'c', 'b']);
  const late = listen('one');
  expect(await late.next()).toBeUndefined();
  one.end();
  await notify('one', 'd');
  expect(await late.next()).toBe('d');
  late.end();
  other.end();
});

test('an append notifies of its position', async () => {
  const events = listen('refold_events');
  await events.next();
  const log = createEventLog(db, [account]);
  const { position } = await log.append({ family: account, streamId: 's', events: [deposited(1), deposited(2)] });
  expect(await events.next()).toBe(String(position));
  events.end();
});

test('all listeners share one connection; after it is lost, they are notified to poll and then receive payloads again', async () => {
  const [one, two] = [listen('one'), listen('two')];
  await Promise.all([one.next(), two.next()]);
  for (let times = 0; times < 3; times++) {
    // A session that was ended is listed for a moment more.
    const [session] = await until(async () => {
      const all = await listeners();
      return all.length === 1 && all;
    });
    await db.query({ text: 'select pg_terminate_backend($1, 5000)', values: [session?.pid] });
    expect(await Promise.all([one.next(), two.next()])).toEqual([undefined, undefined]);
    expect(notifications.connected).toBe(true);
    await notify('two', `${times}`);
    expect(await two.next()).toBe(`${times}`);
  }
  one.end();
  two.end();
});

test('closing ends the connection and the reconnection attempts', async () => {
  const nowhere = createNotifications({
    url: 'postgres://127.0.0.1:1/nothing',
    maxBackoffMs: 60_000,
    minBackoffMs: 60_000,
  });
  nowhere.on('one', () => {});
  expect(nowhere.connected).toBe(false);
  await nowhere.close();
  const client = new pg.Client({ connectionString: testDatabase.url });
  await client.connect();
  const own = createNotifications({ url: testDatabase.url, applicationName: 'refold-listen-own' });
  await new Promise<void>((resolve) => own.on('one', () => resolve()));
  await own.close();
  await own.close();
  expect(own.connected).toBe(false);
  await client.end();
});
