import { randomUUID } from 'node:crypto';
import DataLoader from 'dataloader';
import { RefoldError } from '../../errors.ts';
import { type ConnectionOptions, createDatabase, type Database } from '../postgres/database.ts';
import { type ProcessorUnit, unitText } from '../server/processor-unit.ts';
import type { Queryable } from '../statements/statement.ts';
import { acquireLeases, type LeaseHolder, type LeaseRequest, releaseLeases, renewal, renewLeases } from './leases.ts';
import type { Ownership } from './ownership.ts';
import { createStallGuard, type StallGuard } from './stall-guard.ts';

export interface LeaseOwnershipOptions extends Pick<ConnectionOptions, 'url' | 'prepare' | 'sessions'> {
  /** How long a lease lasts without renewal, in seconds. A failover after a crash takes this long. @default 30 */
  readonly leaseSeconds?: number;
  /** The share of that time after which leases are renewed. @default 1/3: one renewal may fail */
  readonly renewalFactor?: number;
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly now?: () => number;
}

interface Lease {
  readonly unit: string;
  readonly lost: AbortController;
  /** By this process's clock, counted from before the statement was sent. Never later than the expiry in the database. */
  validUntil: number;
  expiry: NodeJS.Timeout | undefined;
}

/**
 * Leases of a unit that the table may hold for this process although it does not use them: the response to their grant or release was lost.
 */
interface Abandoned {
  readonly holders: Set<LeaseHolder>;
  /** The leases have expired by then. */
  until: number;
}

// Short enough that no process waits for an unused lease; long enough not to burden a database that is down.
const releaseAgainMs = 500;

/** A separate connection: renewals must not queue behind batches. A response that is not there when the next renewal is due is given up. */
function openConnection(
  options: Pick<ConnectionOptions, 'url' | 'prepare' | 'sessions'>,
  renewEvery: number,
): Database {
  return createDatabase({
    ...options,
    applicationName: 'refold-owner',
    maxConnections: 1,
    connectTimeoutMs: renewEvery,
    answerTimeoutMs: renewEvery,
    shortStatements: true,
  });
}

/** Returns what tells the guard that the leases have changed. Many changes of one moment are one message. */
function createGuarding(guard: StallGuard, leases: ReadonlyMap<LeaseHolder, Lease>, leaseSeconds: number): () => void {
  let isTold = false;
  return () => {
    if (isTold) return;
    isTold = true;
    queueMicrotask(() => {
      isTold = false;
      const rows = leases.size;
      guard.keep(rows === 0 ? null : { ...renewal([...leases.keys()], leaseSeconds), rows });
    });
  };
}

/** Attempts of one moment share a statement. */
function createAttempts(db: Queryable, leaseSeconds: number) {
  return new DataLoader<LeaseRequest, boolean>(
    async (requests) => {
      const granted = await acquireLeases(db, requests, leaseSeconds);
      return requests.map(({ holder }) => granted.has(holder));
    },
    { cache: false },
  );
}

/**
 * Ownership by leases in a table. Each lasts some seconds and is renewed well before it expires. Nothing is stored in the session, so it
 * works behind a pooler in transaction mode. If a machine disappears, its units are free when its leases expire.
 */
export function createLeaseOwnership(options: LeaseOwnershipOptions): Ownership {
  const { url, prepare = true, sessions = true, leaseSeconds = 30, renewalFactor = 1 / 3 } = options;
  const now = options.now ?? (() => performance.now());
  const lasts = leaseSeconds * 1000;
  const renewEvery = lasts * renewalFactor;
  const db = openConnection({ url, prepare, sessions }, renewEvery);
  const guard = createStallGuard({ url, applicationName: 'refold-owner-guard', lasts });
  const attempts = createAttempts(db, leaseSeconds);
  const leases = new Map<LeaseHolder, Lease>();
  const abandoned = new Map<string, Abandoned>();
  const asking = new Set<string>(); // units with an acquire in progress
  const guardLater = createGuarding(guard, leases, leaseSeconds);
  let closed = false;
  let releasing: NodeJS.Timeout | undefined;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;
  /** Why the latest renewal failed, if it did. */
  let failure: unknown;

  function keepUntil(holder: LeaseHolder, lease: Lease, validUntil: number): void {
    lease.validUntil = validUntil;
    clearTimeout(lease.expiry);
    lease.expiry = setTimeout(() => expire(holder, lease), Math.max(0, validUntil - now()));
  }

  function expire(holder: LeaseHolder, lease: Lease): void {
    const kept = now() - guard.keptMsAgo + lasts;
    if (kept > now()) return void keepUntil(holder, lease, kept);
    // The renewal may have succeeded although its response was lost.
    abandon(lease.unit, holder);
    const reason = `The lease could not be renewed within ${leaseSeconds} s, so another process may own it now.`;
    lose(holder, lease, reason, failure);
  }

  function lose(holder: LeaseHolder, lease: Lease, reason: string, cause?: unknown): void {
    leases.delete(holder);
    guardLater();
    clearTimeout(lease.expiry);
    lease.lost.abort(new RefoldError('PROCESSOR_FENCED', reason, {}, { cause }));
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
    failure = undefined;
    for (const [holder, lease] of due) {
      if (leases.get(holder) !== lease) continue; // released or expired in the meantime
      if (renewed.has(holder)) keepUntil(holder, lease, sentAt + lasts);
      else lose(holder, lease, 'The lease was taken over by another process.');
    }
  }

  function renewLater(): void {
    if (closed || timer !== undefined || renewing !== undefined || leases.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      // A failed renewal is repeated until the lease expires.
      renewing = renew()
        .catch((error: unknown) => {
          failure = error;
        })
        .finally(() => {
          renewing = undefined;
          renewLater();
        });
    }, renewEvery);
  }

  function abandon(unit: string, holder: LeaseHolder): void {
    const holders = abandoned.get(unit)?.holders ?? new Set();
    abandoned.set(unit, { holders: holders.add(holder), until: now() + lasts });
    releaseLater();
  }

  function releaseLater(): void {
    if (closed || releasing !== undefined || abandoned.size === 0) return;
    releasing = setTimeout(() => {
      void releaseAbandoned().finally(() => {
        releasing = undefined;
        releaseLater();
      });
    }, releaseAgainMs);
  }

  async function releaseAbandoned(): Promise<void> {
    // A unit with an acquire in progress is either granted again, or no longer belongs to this process.
    const due = [...abandoned].filter(([unit]) => !asking.has(unit));
    if (due.length === 0) return;
    const holders = due.flatMap(([, one]) => [...one.holders]);
    const isReleased = await releaseLeases(db, holders).then(
      () => true,
      () => false,
    );
    for (const [unit, one] of due) {
      if (abandoned.get(unit) === one && (isReleased || now() >= one.until)) abandoned.delete(unit);
    }
  }

  /** Undefined if another process has the lease. If the response to a grant is lost, the next attempt passes its holder as `former`. */
  async function grantedHolder(unit: ProcessorUnit): Promise<LeaseHolder | undefined> {
    const name = unitText(unit);
    const holder = randomUUID();
    const former = [...(abandoned.get(name)?.holders ?? [])];
    try {
      const isGranted = await attempts.load({ unit, holder, former });
      abandoned.delete(name);
      return isGranted ? holder : undefined;
    } catch (error) {
      abandon(name, holder);
      throw error;
    }
  }

  return {
    async tryAcquire(unit) {
      const name = unitText(unit);
      if (closed || asking.has(name)) return null;
      asking.add(name);
      const sentAt = now();
      const holder = await grantedHolder(unit).finally(() => asking.delete(name));
      if (holder === undefined || closed) return null; // a late grant expires by itself
      const lease: Lease = { unit: name, lost: new AbortController(), validUntil: 0, expiry: undefined };
      leases.set(holder, lease);
      guardLater();
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
          guardLater();
          clearTimeout(lease.expiry);
          await releaseLeases(db, [holder]).catch(() => abandon(name, holder));
        },
      };
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      clearTimeout(releasing);
      await renewing;
      const held = [...leases.keys(), ...[...abandoned.values()].flatMap(({ holders }) => [...holders])];
      for (const lease of leases.values()) clearTimeout(lease.expiry);
      leases.clear();
      // If the database cannot be reached, they expire by themselves.
      if (held.length > 0) await releaseLeases(db, held).catch(() => {});
      await Promise.all([db.close(), guard.close()]);
    },
  };
}
