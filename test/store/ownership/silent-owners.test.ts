import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { createLeaseOwnership } from '../../../src/store/ownership/lease-ownership.ts';
import type { Ownership } from '../../../src/store/ownership/ownership.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/until.ts';
import { patiently } from './patient-owner.ts';
import { unitOf } from './unit-of.ts';

const { database, db } = await databaseOfFile();
let proxy: TcpProxy;
const opened = new Set<Ownership>();
beforeEach(async () => {
  proxy = await startTcpProxy(Number(new URL(database.url).port));
});
afterEach(async () => {
  proxy.resume();
  for (const ownership of opened) await ownership.close();
  opened.clear();
  await proxy.close();
});

function opening<T extends Ownership>(ownership: T): T {
  opened.add(ownership);
  return ownership;
}

const kinds = { advisory: createAdvisoryOwnership, lease: createLeaseOwnership };

describe.each(['advisory', 'lease'] as const)('ownership by %s', (kind) => {
  test('of a host that has gone silent ends within the bound, and another process takes it over', async () => {
    const unit = `silent ${kind}`;
    const silent = opening(kinds[kind]({ url: proxy.through(database.url), leaseSeconds: 3 }));
    const healthy = opening(kinds[kind]({ url: database.url, leaseSeconds: 3 }));
    const lock = await patiently(silent, unit);
    proxy.swallow();
    const taken = await until(() => patiently(healthy, unit));
    await until(() => lock?.lost.aborted);
    expect(lock?.lost.reason).toMatchObject({ code: 'PROCESSOR_FENCED' });
    await taken.release();
  });
});

test('an advisory owner that stalled for longer than the bound notices before any timer has run', async () => {
  let now = 0;
  const lock = await patiently(opening(createAdvisoryOwnership({ url: database.url, now: () => now })), 'stalled');
  now = 29_999;
  expect(() => lock?.verify()).not.toThrow();
  now = 30_000;
  expect(() => lock?.verify()).toThrow('The database has not responded for 30 s');
  expect(lock?.lost.aborted).toBe(true);
});

describe('a lease whose release fails', () => {
  const holderOf = async (name: string) =>
    (
      await db.query<{ holder: string }>({ text: 'select holder from refold.leases where name = $1', values: [name] })
    )[0]?.holder;

  test('is released again until the release succeeds', async () => {
    const ownership = opening(createLeaseOwnership({ url: proxy.through(database.url), leaseSeconds: 3600 }));
    const lock = await patiently(ownership, 'released');
    // No server listens behind the proxy any more, so a connection is refused at once.
    proxy.retarget(1);
    proxy.cutAll();
    await lock?.release();
    expect(await holderOf('released')).toBeDefined();
    proxy.retarget(Number(new URL(database.url).port));
    await until(async () => (await holderOf('released')) === undefined);
  });

  test('can be acquired again by its own process, and by no other', async () => {
    const ownership = opening(createLeaseOwnership({ url: proxy.through(database.url), leaseSeconds: 3600 }));
    const other = opening(createLeaseOwnership({ url: database.url, leaseSeconds: 3600 }));
    const lock = await patiently(ownership, 'known');
    proxy.retarget(1);
    proxy.cutAll();
    await lock?.release();
    proxy.retarget(Number(new URL(database.url).port));
    expect(await patiently(ownership, 'known')).not.toBeNull();
    expect(await patiently(other, 'known')).toBeNull();
  });

  test('and so can a lease whose grant response was lost', async () => {
    const ownership = opening(createLeaseOwnership({ url: proxy.through(database.url), leaseSeconds: 3600 }));
    const cut = proxy.cutAfter((chunk) => chunk.includes('granted'));
    await expect(ownership.tryAcquire(unitOf('granted'))).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    // Otherwise it is released before it is acquired again.
    proxy.retarget(1);
    proxy.cutAll();
    await cut;
    const before = await until(() => holderOf('granted'));
    proxy.retarget(Number(new URL(database.url).port));
    expect(await patiently(ownership, 'granted')).not.toBeNull();
    expect(await holderOf('granted')).not.toBe(before);
  });
});
