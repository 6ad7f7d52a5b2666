import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { globalPosition } from '../../../src/events/global-position.ts';
import type { Projection } from '../../../src/projections/projection/projection.ts';
import { createPositions, type Positions, type PositionsOptions } from '../../../src/runtime/reads/positions.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications, type Notifications } from '../../../src/store/postgres/notifications.ts';
import { claimProcessor, recordStop, releaseProcessor } from '../../../src/store/processors/checkpoints.ts';
import type { Queryable } from '../../../src/store/statements/statement.ts';
import { orderBook, shelfPlaces } from '../../store/queries/order-book.ts';
import { createReadModelWriter, type ReadModelWriter } from '../../support/read-model-writer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

let testDatabase: TestDatabase;
let db: Database;
let notifications: Notifications;
let orders: ReadModelWriter;
let shelves: ReadModelWriter;
let looks: number;
const opened: Positions[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ url: testDatabase.url });
  notifications = createNotifications({ url: testDatabase.url });
  orders = await createReadModelWriter(db, orderBook);
  shelves = await createReadModelWriter(db, shelfPlaces);
});

beforeEach(() => {
  looks = 0;
});

afterEach(() => {
  for (const positions of opened.splice(0)) positions.close();
});

afterAll(async () => {
  await notifications.close();
  await db.close();
  await testDatabase.drop();
});

const counted: Queryable = {
  query(statement) {
    looks++;
    return db.query(statement);
  },
};

function positionsWith(options: Partial<PositionsOptions> = {}): Positions {
  const head = async () => globalPosition(1000n);
  const positions = createPositions({ db: counted, notifications, timeout: 300_000, head, ...options });
  opened.push(positions);
  return positions;
}

const deaf: Pick<Notifications, 'on'> = { on: () => () => {} };
const seldom = { min: 3_600_000, max: 3_600_000, step: 0 };
const often = { min: 1, max: 1, step: 0 };

function next(writer: ReadModelWriter, steps = 1n) {
  return globalPosition(writer.checkpoint + steps);
}

test('a position that the version has reached is not waited for, with or without a notification', async () => {
  await orders.write({});
  await positionsWith({ notifications: deaf, polling: seldom }).waitFor(orderBook, orders.checkpoint);
});

test('a notification ends the wait, without polling', async () => {
  const positions = positionsWith({ polling: seldom });
  const heard = Promise.withResolvers<bigint | undefined>();
  positions.onCheckpoint(orderBook, (checkpoint) => heard.resolve(checkpoint));
  // Listening has begun, and earlier changes have been polled.
  expect(await heard.promise).toBeUndefined();
  const waiting = positions.waitFor(orderBook, next(orders, 2n));
  await orders.write({});
  await orders.write({});
  await waiting;
});

test('a commit of this process ends the wait, without a notification or polling', async () => {
  const positions = positionsWith({ notifications: deaf, polling: seldom });
  const waiting = positions.waitFor(orderBook, next(orders));
  positions.reached(orderBook, { partition: 0, partitions: 1, checkpoint: next(orders) });
  await waiting;
});

test('polling ends the wait if no notification comes', async () => {
  const positions = positionsWith({ notifications: deaf, polling: often });
  const waiting = positions.waitFor(orderBook, next(orders));
  await orders.write({}, { notify: false });
  await waiting;
});

test('a known position needs no poll of the database', async () => {
  // No notifications: once listening begins, some may have been missed, and known positions are forgotten.
  const positions = positionsWith({ notifications: deaf, polling: often });
  await positions.waitFor(orderBook, await orders.write({}));
  const before = looks;
  await positions.waitFor(orderBook, orders.checkpoint);
  expect(looks).toBe(before);
});

test('all waits of a process share its polls, and polling stops once they have ended', async () => {
  const written = Promise.withResolvers<void>();
  const late: Queryable = {
    async query(statement) {
      await written.promise;
      return counted.query(statement);
    },
  };
  const positions = positionsWith({ db: late, notifications: deaf, polling: often });
  const waits = Array.from({ length: 100 }, (_, index) =>
    positions.waitFor(
      ...(index % 2 === 0 ? ([orderBook, next(orders)] as const) : ([shelfPlaces, next(shelves)] as const)),
    ),
  );
  await orders.write({}, { notify: false });
  await shelves.write({}, { notify: false });
  written.resolve();
  await Promise.all(waits);
  expect(looks).toBe(1);
  for (let trip = 0; trip < 50; trip++) await db.query({ text: 'select' }); // many times longer than the interval
  expect(looks).toBe(1);
});

test('the timeout error says how far the version is', async () => {
  await orders.write({}, { notify: false });
  const positions = positionsWith({ timeout: 1 });
  await expect(positions.waitFor(orderBook, next(orders, 40n))).rejects.toMatchObject({
    code: 'POSITION_TIMEOUT',
    fields: {
      projection: 'order_book',
      version: 1,
      position: String(orders.checkpoint + 40n),
      reached: String(orders.checkpoint),
      head: '1000',
    },
  });
});

test('a wait for a version that has stopped at an event fails, until another process takes it over', async () => {
  const unit = { kind: 'processor', name: 'order_book', version: 1, partition: 0 } as const;
  const claim = await claimProcessor(db, unit, 'host:1');
  const positions = positionsWith({ polling: often });
  const refused = expect(positions.waitFor(orderBook, next(orders))).rejects.toMatchObject({
    code: 'POSITION_TIMEOUT',
    message: expect.stringContaining('because it has stopped at an event'),
    fields: { reached: String(orders.checkpoint), stopped: true },
  });
  await recordStop(db, claim, { message: 'no such shelf', at: new Date().toISOString() });
  await refused;
  // Events folded before are visible, and a wait without a timeout continues.
  await positionsWith({ notifications: deaf, polling: often }).waitFor(orderBook, orders.checkpoint);
  const abort = new AbortController();
  const before = looks;
  const patient = expect(
    positions.waitFor(orderBook, next(orders), { timeout: Infinity, signal: abort.signal }),
  ).rejects.toThrow('enough');
  await until(() => looks > before + 2);
  abort.abort(new Error('enough'));
  await patient;
  await releaseProcessor(db, claim);
  await db.query({ text: "update refold.processors set status = 'running' where name = 'order_book'" });
  const taken = positions.waitFor(orderBook, next(orders));
  await orders.write({});
  await taken;
});

test('a version that is at the position when the time is up is in time, with or without a notification', async () => {
  // Folded before the last poll, without a notification.
  const late: Queryable = {
    async query(statement) {
      if (statement.name === 'read version status') await orders.write({}, { notify: false });
      return db.query(statement);
    },
  };
  const positions = positionsWith({ db: late, notifications: deaf, polling: seldom, timeout: 1 });
  await positions.waitFor(orderBook, next(orders));
});

test('an aborted wait ends with the reason', async () => {
  const abort = new AbortController();
  const waiting = positionsWith().waitFor(orderBook, next(orders), { signal: abort.signal });
  const reason = new Error('gone');
  abort.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});

test('closing ends all waits', async () => {
  const positions = positionsWith();
  const waiting = positions.waitFor(orderBook, next(orders), { timeout: Infinity });
  positions.close();
  await expect(waiting).rejects.toThrow('stopping');
});

test('a wait survives a lost connection', async () => {
  const positions = positionsWith({ polling: seldom });
  await positions.waitFor(orderBook, orders.checkpoint);
  const waiting = positions.waitFor(orderBook, next(orders));
  await db.query({
    text: `
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database() and application_name = 'refold-listen'`,
  });
  await orders.write({});
  await waiting;
});

test('progress is the share of the log that was folded', async () => {
  await orders.write({}, { to: globalPosition(250n) });
  expect(await positionsWith().progress(orderBook)).toEqual({
    projection: 'order_book',
    version: 1,
    state: 'active',
    position: 250n,
    head: 1000n,
    progress: 0.25,
    paused: false,
    heldRows: 0,
  });
  const unknown: Projection = { ...orderBook, name: 'unknown' };
  expect(await positionsWith().progress(unknown)).toMatchObject({ state: 'building', position: 0n, progress: 0 });
});

test('a wait that ends while the database does not respond says so, and not how far the version was', async () => {
  const away = createDatabase({ url: 'postgresql://127.0.0.1:1/nowhere' });
  const positions = positionsWith({ db: away, notifications: deaf, timeout: 10 });
  await expect(positions.waitFor(orderBook, globalPosition(7n))).rejects.toMatchObject({
    code: 'POSITION_TIMEOUT',
    message: 'order_book@1 did not reach position 7 within 10 ms; its database does not respond. Ask again later.',
  });
  await away.close();
});
