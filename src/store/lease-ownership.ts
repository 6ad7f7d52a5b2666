import { RefoldError } from '../errors.ts';
import { createDatabase, type DatabaseOptions } from './database.ts';
import { acquireLease, type LeaseHolder, releaseLeases, renewLeases } from './leases.ts';
import type { Ownership } from './ownership.ts';

export interface LeaseOwnershipOptions extends Pick<DatabaseOptions, 'url' | 'prepare' | 'sessions'> {
  /** How long a lease lasts without a renewal, in seconds: what a fail-over takes after a crash. @default 30 */
  readonly leaseSeconds?: number;
  /** The share of that time after which leases are renewed. @default 1/3, so that one renewal may fail */
  readonly renewalFactor?: number;
  /** A clock that never steps back, in milliseconds. @default performance.now */
  readonly now?: () => number;
}

interface Lease {
  readonly lost: AbortController;
  /** By this process's clock, counted from before the statement was sent: never later than what the database has. */
  validUntil: number;
  expiry: NodeJS.Timeout | undefined;
}

/**
 * Ownership by leases in a table: each lasts some seconds and is renewed well before they are over. Nothing is kept in a session, so
 * it works behind a transaction-mode pooler, and a machine that vanishes frees its processors when its leases end.
 */
export function createLeaseOwnership(options: LeaseOwnershipOptions): Ownership {
  const { url, prepare = true, sessions = true, leaseSeconds = 30, renewalFactor = 1 / 3 } = options;
  const now = options.now ?? (() => performance.now());
  const lasts = leaseSeconds * 1000;
  const renewEvery = lasts * renewalFactor;
  // A connection of its own: renewals must not queue behind batches. An answer that comes after the next renewal is due is given up.
  const db = createDatabase({
    url,
    prepare,
    sessions,
    applicationName: 'refold-owner',
    maxConnections: 1,
    connectTimeoutMs: renewEvery,
    answerTimeoutMs: renewEvery,
  });
  const leases = new Map<LeaseHolder, Lease>();
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;

  function keepUntil(holder: LeaseHolder, lease: Lease, validUntil: number): void {
    lease.validUntil = validUntil;
    clearTimeout(lease.expiry);
    lease.expiry = setTimeout(() => expire(holder, lease), Math.max(0, validUntil - now()));
  }

  function expire(holder: LeaseHolder, lease: Lease): void {
    lose(holder, lease, `The lease could not be renewed within ${leaseSeconds} s, so another process may own it now.`);
  }

  function lose(holder: LeaseHolder, lease: Lease, reason: string): void {
    leases.delete(holder);
    clearTimeout(lease.expiry);
    lease.lost.abort(new RefoldError('PROCESSOR_FENCED', reason));
  }

  async function renew(): Promise<void> {
    const due = [...leases];
    if (due.length === 0) return;
    const sentAt = now();
    const renewed = await renewLeases(
      db,
      due.map(([holder]) => holder),
      leaseSeconds,
    );
    for (const [holder, lease] of due) {
      if (leases.get(holder) !== lease) continue; // released or expired meanwhile
      if (renewed.has(holder)) keepUntil(holder, lease, sentAt + lasts);
      else lose(holder, lease, 'The lease was taken over by another process.');
    }
  }

  function renewLater(): void {
    if (closed || timer !== undefined || renewing !== undefined || leases.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      // What could not be renewed is tried again until it expires.
      renewing = renew()
        .catch(() => {})
        .finally(() => {
          renewing = undefined;
          renewLater();
        });
    }, renewEvery);
  }

  return {
    async tryAcquire(unit) {
      if (closed) return null;
      const sentAt = now();
      const holder = await acquireLease(db, unit, leaseSeconds);
      if (holder === undefined || closed) return null; // what comes too late expires by itself
      const lease: Lease = { lost: new AbortController(), validUntil: 0, expiry: undefined };
      leases.set(holder, lease);
      keepUntil(holder, lease, sentAt + lasts);
      renewLater();
      return {
        lost: lease.lost.signal,
        verify() {
          if (now() >= lease.validUntil && leases.get(holder) === lease) expire(holder, lease);
          lease.lost.signal.throwIfAborted();
        },
        async release() {
          if (closed) return;
          leases.delete(holder);
          clearTimeout(lease.expiry);
          await releaseLeases(db, [holder]);
        },
      };
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await renewing;
      const held = [...leases.keys()];
      for (const lease of leases.values()) clearTimeout(lease.expiry);
      leases.clear();
      // Where the database can't be reached they expire by themselves.
      if (held.length > 0) await releaseLeases(db, held).catch(() => {});
      await db.close();
    },
  };
}
