import { sameAccess } from '../../access.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import { notReady } from '../../projections/projection/not-ready.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import type { Pins, ServedVersion, VersionMap } from '../../projections/projection/version-map.ts';
import type { LiveOptions } from '../../schema/contract/operation-context.ts';
import { readAnchor } from '../../store/log/horizon.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { checkHeld } from '../reads/held-reads.ts';
import type { Positions } from '../reads/positions.ts';
import { waitForRows } from '../reads/wait-for-rows.ts';
import type { Follower } from './follower.ts';
import type { Followers } from './followers.ts';
import { LiveMessageIterator } from './live-message-iterator.ts';
import { accessSwitched, type LiveSubscription } from './live-subscription.ts';

/** What the subscriptions of a process share. */
export interface SubscriptionParts {
  /** The database of the log. */
  readonly db: Queryable;
  /** The database of a version. */
  dbOf(projection: Projection): Queryable;
  readonly versions: {
    current(): VersionMap;
    pinned(pins: Pins): VersionMap;
    /** Reads the registry now, instead of at the next notification. */
    refresh(): Promise<void>;
  };
  readonly positions: Pick<Positions, 'waitFor' | 'forget' | 'progress'>;
  readonly followers: Followers;
  /** The open subscriptions. */
  readonly open: Set<OpenSubscription>;
  /** Aborted when the process stops: no subscription starts any more. */
  readonly closed: AbortSignal;
}

export interface OpenSubscription {
  /** Attaches to the version that is served now; to none while none is active. */
  follow(): void;
  end(): void;
}

export interface VersionSubscription<T> {
  readonly declared: Projection;
  readonly live: LiveOptions;
  /** The position from which the client resumes, with its anchor; null if none is known. */
  readonly since: PositionToken | null;
  /** The rows that it is about. @default any */
  readonly keys?: readonly RowKey[];
  create(wake: () => void, fail: (error: unknown) => void): LiveSubscription<T>;
}

/** Starts with the first pull: waits for the demanded position, and moves from version to version with each activation. */
export function subscribeToVersion<T>(
  parts: SubscriptionParts,
  { declared, live, since, keys, create }: VersionSubscription<T>,
): AsyncIterableIterator<T> {
  const { db, dbOf, versions, positions, followers, open } = parts;
  const { after, pinned = false } = live;
  let ending: AbortController | undefined;
  let over = false;
  let follower: Follower | undefined;
  const messages = new LiveMessageIterator<T>({
    start: () => void start().catch((error: unknown) => messages.fail(error)),
    take: () => subscription.take(),
    stop() {
      over = true;
      ending?.abort();
      open.delete(entry);
      leave();
      followers.stopIdle();
    },
  });
  const subscription = create(
    () => messages.wake(),
    (error) => messages.fail(error),
  );
  const entry: OpenSubscription = { follow, end: () => messages.end() };

  async function start(): Promise<void> {
    if (parts.closed.aborted) return messages.end();
    open.add(entry);
    if (!pinned) await activeVersion(parts, declared);
    if (after !== null && !over && !(since && (await isGone(db, since)))) await waitFor(after);
    if (!over) follow();
  }

  async function waitFor(position: GlobalPosition): Promise<void> {
    ending = new AbortController();
    for (let isThere = false; !isThere; ) {
      const served = pinned ? servedNow()?.projection : await activeVersion(parts, declared);
      if (!served) return;
      const rows = { db: dbOf(served), positions, signal: ending.signal };
      const there = await waitForRows(rows, served, position);
      isThere = there !== 'moved';
      // A subscriber that may see all rows or a part of them: only that one lacks an event is said.
      if (there === 'leaves out' && live.held)
        await checkHeld(rows.db, served, live.held, { upTo: position, keys: keys ?? null, isShown: () => true });
      // A rebuild has moved the rows to another table, and this process does not know yet.
      if (!isThere) await versions.refresh();
    }
  }

  function servedNow(): ServedVersion | undefined {
    const { name, version } = declared;
    return (pinned ? versions.pinned(new Map([[name, version]])) : versions.current()).served.get(name);
  }

  function follow(): void {
    let served: ServedVersion | undefined;
    try {
      served = servedNow();
    } catch (error) {
      messages.fail(error); // the pinned version is no longer maintained
      return;
    }
    if (served?.active && served.projection === follower?.projection) return;
    leave();
    if (!served?.active) return;
    try {
      if (!sameAccess(declared, served.projection)) throw accessSwitched(declared, served.projection);
      const next = followers.of(served.projection);
      subscription.attach(next);
      follower = next;
      next.wake();
    } catch (error) {
      messages.fail(error);
    }
  }

  function leave(): void {
    if (follower) subscription.detach();
    follower = undefined;
  }

  return messages;
}

/** Whether a position belongs to a history that is gone. Do not wait for such a position: its client starts over. */
async function isGone(db: Queryable, { position, anchor }: PositionToken): Promise<boolean> {
  return (await readAnchor(db, position)).anchor !== anchor;
}

/** @throws RefoldError `PROJECTION_NOT_READY` while no version is active */
async function activeVersion({ versions, positions }: SubscriptionParts, declared: Projection): Promise<Projection> {
  const { served } = versions.current();
  const answering = served.get(declared.name) ?? { projection: declared, active: false, state: 'building' };
  if (answering.active) return answering.projection;
  throw notReady(answering, await positions.progress(answering.projection));
}
