import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { createLeaseOwnership } from '../../src/store/lease-ownership.ts';
import type { Ownership, OwnershipLock } from '../../src/store/ownership.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { describeOwnership } from './ownership.contract.ts';

describeOwnership({
  kind: 'lease',
  open: (url) => createLeaseOwnership({ url, leaseSeconds: 1 }),
  takeAway: async (db, name) => {
    await db.query({
      text: `update refold.leases set holder = gen_random_uuid(), expires_at = now() where name = $1`,
      values: [name],
    });
  },
});

let database: TestDatabase;
let db: Database;
const opened = new Set<Ownership>();
beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ url: database.url });
});
afterEach(async () => {
  for (const ownership of opened) await ownership.close();
  opened.clear();
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

async function acquire(
  name: string,
  options: { leaseSeconds?: number; now?: () => number } = {},
): Promise<OwnershipLock> {
  const ownership = createLeaseOwnership({ url: database.url, leaseSeconds: 1, ...options });
  opened.add(ownership);
  const lock = await ownership.tryAcquire('processor', name, 1);
  if (!lock) throw new Error(`'${name}' is held by somebody else`);
  return lock;
}

async function expiry(name: string): Promise<string | undefined> {
  const rows = await db.query<{ expires: string }>({
    text: 'select expires_at as expires from refold.leases where name = $1',
    values: [name],
  });
  return rows[0]?.expires;
}

test('a lease is renewed for as long as its holder lives', async () => {
  const lock = await acquire('renewed');
  const first = await expiry('renewed');
  await until(async () => (await db.query({ text: 'select where now() > $1', values: [first] })).length > 0);
  expect(lock.lost.aborted).toBe(false);
  expect(await createdElsewhere('renewed')).toBeNull();
  await lock.release();
  expect(await expiry('renewed')).toBeUndefined();
});

async function createdElsewhere(name: string): Promise<OwnershipLock | null> {
  const ownership = createLeaseOwnership({ url: database.url });
  opened.add(ownership);
  return ownership.tryAcquire('processor', name, 1);
}

test('a holder who can’t renew the lease gives up when it expires', async () => {
  const lock = await acquire('unreachable');
  await db.transaction(async (tx) => {
    await tx.query({ text: 'lock table refold.leases in exclusive mode' });
    await new Promise((resolve) => lock.lost.addEventListener('abort', resolve));
  });
  expect(lock.lost.reason).toMatchObject({
    message: 'The lease could not be renewed within 1 s, so another process may own it now.',
  });
});

test('a process that was stalled beyond its lease knows before any timer has run', async () => {
  let now = 0;
  const lock = await acquire('stalled', { leaseSeconds: 30, now: () => now });
  now = 29_999;
  expect(() => lock.verify()).not.toThrow();
  now = 30_000;
  expect(() => lock.verify()).toThrow('The lease could not be renewed within 30 s');
  expect(lock.lost.aborted).toBe(true);
});
