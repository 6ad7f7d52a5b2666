import { afterEach, expect, test } from 'vitest';
import { createLeaseOwnership, type LeaseOwnershipOptions } from '../../../src/store/ownership/lease-ownership.ts';
import type { Ownership, OwnershipLock } from '../../../src/store/ownership/ownership.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { until } from '../../support/until.ts';
import { describeOwnership } from './ownership.contract.ts';
import { patiently } from './patient-owner.ts';
import { unitOf } from './unit-of.ts';

describeOwnership({
  kind: 'lease',
  // On a busy machine, connecting many clients may take as long as a renewal.
  open: (url, renewEverySeconds) =>
    createLeaseOwnership({ url, leaseSeconds: 300, renewalFactor: renewEverySeconds / 300 }),
  letEnd: async (db, name) => {
    await db.query({ text: 'update refold.leases set expires_at = now() where name = $1', values: [name] });
  },
  takeAway: async (db, name) => {
    await db.query({
      text: `update refold.leases set holder = gen_random_uuid(), expires_at = now() where name = $1`,
      values: [name],
    });
  },
});

const { database, db } = await databaseOfFile();
const opened = new Set<Ownership>();
afterEach(async () => {
  for (const ownership of opened) await ownership.close();
  opened.clear();
});

async function acquire(name: string, options: Omit<LeaseOwnershipOptions, 'url'>): Promise<OwnershipLock> {
  const ownership = createLeaseOwnership({ url: database.url, ...options });
  opened.add(ownership);
  const lock = await patiently(ownership, name);
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

test('leases that are attempted at once share a statement', async () => {
  await database.administer(`
    create table public.attempts ();
    grant select on public.attempts to public;
    create function public.count_attempt() returns trigger language plpgsql security definer as $$
    begin
      insert into public.attempts default values;
      return null;
    end $$;
    create trigger counted before insert on refold.leases for each statement execute function public.count_attempt()`);
  const ownership = createLeaseOwnership({ url: database.url });
  opened.add(ownership);
  const units = Array.from({ length: 40 }, (_, partition) => unitOf('together', 'processor', 1, partition));
  const locks = await Promise.all(units.map((unit) => ownership.tryAcquire(unit)));
  expect(locks.every((lock) => lock !== null)).toBe(true);
  expect(await db.query({ text: 'select count(*)::int as attempts from public.attempts' })).toEqual([{ attempts: 1 }]);
  await database.administer('drop trigger counted on refold.leases');
});

test('a lease is renewed for as long as its holder lives', async () => {
  const lock = await acquire('renewed', { leaseSeconds: 60, renewalFactor: 1 / 60 });
  for (let renewal = 1; renewal <= 2; renewal++) {
    const before = await expiry('renewed');
    await until(async () => lock.lost.aborted || (await expiry('renewed')) !== before);
  }
  expect(lock.lost.aborted).toBe(false);
  expect(await createdElsewhere('renewed')).toBeNull();
  await lock.release();
  // A release that the server answers late is repeated.
  await until(async () => (await expiry('renewed')) === undefined);
});

async function createdElsewhere(name: string): Promise<OwnershipLock | null> {
  const ownership = createLeaseOwnership({ url: database.url });
  opened.add(ownership);
  return ownership.tryAcquire(unitOf(name));
}

test('a holder that can’t renew its lease gives up when the lease expires', async () => {
  // Few renewals leave time for connecting; the lease still ends soon.
  const lock = await acquire('unreachable', { leaseSeconds: 4, renewalFactor: 0.9 });
  await db.transaction(async (tx) => {
    await tx.query({ text: 'lock table refold.leases in exclusive mode' });
    await until(() => lock.lost.aborted);
  });
  expect(lock.lost.reason).toMatchObject({
    message: 'The lease could not be renewed within 4 s, so another process may own it now.',
  });
});

test('a process that stalled for longer than its lease notices before any timer has run', async () => {
  let now = 0;
  const lock = await acquire('stalled', { leaseSeconds: 30, now: () => now });
  now = 29_999;
  expect(() => lock.verify()).not.toThrow();
  now = 30_000;
  expect(() => lock.verify()).toThrow('The lease could not be renewed within 30 s');
  expect(lock.lost.aborted).toBe(true);
});
