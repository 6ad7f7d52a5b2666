import type { PollingOptions } from '../../config/runtime-options.ts';
import { RefoldError } from '../../errors.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionProgress } from '../../projections/projection/version-map.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import {
  checkpointChannel,
  type NotifiedCheckpoint,
  parseCheckpoint,
} from '../../store/processors/checkpoint-notifications.ts';
import { countHeldRows } from '../../store/processors/held-rows.ts';
import { readVersionPositions, readVersionStatus } from '../../store/registry/version-positions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { createPoller } from '../scheduling/poller.ts';

/** Receives a checkpoint; undefined if notifications may have been missed, so the listener must check for itself. */
export type CheckpointListener = (checkpoint: GlobalPosition | undefined) => void;

export interface PositionsOptions {
  /** The database that holds the read tables. */
  readonly db: Queryable;
  readonly notifications: Pick<Notifications, 'on'>;
  /** The timeout of {@link Positions.waitFor}, in milliseconds. */
  readonly timeout: number;
  /** Returns the position of the last event in the log. */
  readonly head: () => Promise<GlobalPosition>;
  /** The polling interval while there are waits, for missing or late notifications. Milliseconds. */
  readonly polling?: Required<Pick<PollingOptions, 'min' | 'max' | 'step'>>;
}

export interface PositionWait {
  /** Milliseconds; `Infinity` waits until aborted. @default the `timeout` of {@link PositionsOptions} */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/** How far each version is, as this process knows it. */
export interface Positions {
  /**
   * Waits until the version has reached the position. If the version has stopped before the position, a wait with a finite timeout ends at once.
   *
   * @throws RefoldError `POSITION_TIMEOUT` with the position reached; the signal's reason.
   */
  waitFor(projection: Projection, position: GlobalPosition, options?: PositionWait): Promise<void>;
  progress(projection: Projection): Promise<VersionProgress>;
  /** Calls the listener with each known checkpoint of the version. Returns a function that removes the listener. */
  onCheckpoint(projection: Projection, listener: CheckpointListener): () => void;
  /** Records a checkpoint that this process has committed, before its notification arrives. */
  reached(projection: Projection, at: Omit<NotifiedCheckpoint, 'id'>): void;
  /** Discards the known checkpoints, because a version may have gone back. */
  forget(): void;
  /** Ends all waits with an error. */
  close(): void;
}

// Most notifications arrive within a millisecond; polling covers those that get lost.
const defaultPolling = { min: 50, max: 1000, step: 50 };

export function createPositions(options: PositionsOptions): Positions {
  const { db, head: readHead, polling = defaultPolling } = options;
  const known = createKnownCheckpoints();
  const waiters = new Set<Waiter>();
  const listeners = new Map<string, Set<CheckpointListener>>();
  const poller = createPoller({
    ...polling,
    poll: readWanted,
    // Waiters end with their timeout; the database may be back before.
    onError: () => {},
    isNeeded: () => waiters.size > 0,
  });
  let closed = false;

  const unsubscribe = options.notifications.on(checkpointChannel, (payload) => {
    if (payload === undefined) return mayHaveMissed();
    const heard = parseCheckpoint(payload);
    if (heard) hear(heard);
  });

  function mayHaveMissed(): void {
    known.clear();
    poller.wake();
    for (const set of listeners.values()) for (const listener of set) listener(undefined);
  }

  function hear(heard: NotifiedCheckpoint): void {
    learn(heard.id, known.withPartition(heard));
  }

  function learn(id: string, checkpoints: Checkpoints): void {
    const moved = known.set(id, checkpoints);
    if (moved) poller.quicken();
    const least = leastOf(checkpoints);
    for (const waiter of waiters) {
      if (waiter.projection.id === id && least !== undefined && least >= waiter.position) waiter.resolve();
    }
    // A partition's rows may have changed although the lowest checkpoint has not moved.
    if (checkpoints.length > 1 && !moved) return;
    for (const listener of listeners.get(id) ?? []) listener(checkpoints.length > 1 ? undefined : least);
  }

  async function readWanted(): Promise<'idle'> {
    const wanted = new Map([...waiters].map(({ projection }) => [projection.id, projection]));
    for (const { name, version, checkpoints, stoppedAt } of await readVersionPositions(db, [...wanted.values()])) {
      const id = `${name}@${version}`;
      learn(id, checkpoints);
      if (stoppedAt !== null) giveUp(id, stoppedAt);
    }
    return 'idle';
  }

  function giveUp(id: string, stoppedAt: GlobalPosition): void {
    for (const waiter of waiters) {
      if (waiter.projection.id === id && stoppedAt < waiter.position) waiter.giveUp();
    }
  }

  async function waitFor(projection: Projection, position: GlobalPosition, wait: PositionWait = {}): Promise<void> {
    wait.signal?.throwIfAborted();
    if (closed) throw closedError();
    if (known.reached(projection) >= position) return;
    const { timeout = options.timeout, signal } = wait;
    const waiter = createWaiter(projection, position, timeout, signal, (why, stopped) =>
      whyNotReached(projection, { position, why, stopped }),
    );
    waiters.add(waiter);
    // The position may have been reached without a notification to this process, so poll before waiting.
    poller.wake();
    try {
      await waiter.settled;
    } finally {
      waiters.delete(waiter);
      waiter.stop();
      if (waiters.size === 0) poller.wake(); // it rests
    }
  }

  /** Returns undefined if a last look shows the version at the position: a stalled process may have missed the notification. */
  async function whyNotReached(
    projection: Projection,
    missed: Omit<MissedPosition, 'reached'>,
  ): Promise<RefoldError | undefined> {
    const status = await readVersionStatus(db, projection.name, projection.version).catch(() => null);
    const reached = status?.checkpoint ?? known.reached(projection);
    if (reached >= missed.position) return undefined;
    const head = await readHead().catch(() => undefined);
    return positionTimeout(projection, { ...missed, reached, head, isAway: status === null });
  }

  return {
    waitFor,
    async progress(projection) {
      const { name, version } = projection;
      const [status, last] = await Promise.all([readVersionStatus(db, name, version), readHead()]);
      const heldRows = status?.leavesOut ? await countHeldRows(db, status.tableName) : 0;
      const { state = 'building', checkpoint: position = beginning, paused = false } = status ?? {};
      // The log or the version may have grown between the two reads, but a version is never ahead of the log.
      const end = last > position ? last : position;
      const progress = end === 0n ? 1 : Number((position * 10_000n) / end) / 10_000;
      return { projection: name, version, state, position, head: end, progress, paused, heldRows };
    },
    onCheckpoint(projection, listener) {
      const set = listeners.get(projection.id) ?? new Set();
      listeners.set(projection.id, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(projection.id) === set) listeners.delete(projection.id);
      };
    },
    reached: ({ id }, at) => hear({ id, ...at }),
    forget: known.clear,
    close() {
      closed = true;
      unsubscribe();
      void poller.stop();
      for (const waiter of waiters) waiter.reject(closedError());
    },
  };
}

/** The checkpoint of each partition of a version; undefined if not known yet. */
type Checkpoints = readonly (GlobalPosition | undefined)[];

/** The checkpoints of the versions that this process has heard of. */
function createKnownCheckpoints() {
  const known = new Map<string, Checkpoints>();
  return {
    /** The position up to which all partitions of a version have folded the log. */
    reached: ({ id }: Projection) => leastOf(known.get(id) ?? []) ?? beginning,
    /** The checkpoints of a version with that of one partition replaced. */
    withPartition({ id, partition, partitions, checkpoint }: NotifiedCheckpoint): Checkpoints {
      const before = known.get(id);
      return Array.from({ length: partitions }, (_, index) =>
        index === partition ? checkpoint : before?.length === partitions ? before[index] : undefined,
      );
    },
    /** The latest report counts, not the highest: a version rebuilt in place goes back to the beginning. Returns whether it differs. */
    set(id: string, checkpoints: Checkpoints): boolean {
      const before = known.get(id);
      known.set(id, checkpoints);
      return before?.length !== checkpoints.length || checkpoints.some((one, index) => one !== before[index]);
    },
    clear: () => known.clear(),
  };
}

/** One wait for a position. It ends with the position, its timeout or its signal. */
interface Waiter {
  readonly projection: Projection;
  readonly position: GlobalPosition;
  readonly settled: Promise<void>;
  resolve(): void;
  /** Called if the version has stopped before the position. */
  giveUp(): void;
  reject(error: unknown): void;
  /** Releases its timer and its signal. */
  stop(): void;
}

/** `whyNot` returns the error of a wait that ends before the position; undefined if the position has been reached after all. */
function createWaiter(
  projection: Projection,
  position: GlobalPosition,
  timeout: number,
  signal: AbortSignal | undefined,
  whyNot: (why: string, stopped: boolean) => Promise<RefoldError | undefined>,
): Waiter {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const isBounded = Number.isFinite(timeout);
  let isOver = false;
  const end = (why: string, stopped: boolean) => {
    if (!isOver) void whyNot(why, stopped).then((error) => (error ? reject(error) : resolve()), reject);
    isOver = true;
  };
  const deadline = isBounded ? setTimeout(() => end(`within ${timeout} ms`, false), timeout) : undefined;
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  return {
    projection,
    position,
    settled: promise,
    resolve,
    giveUp: () => isBounded && end('because it has stopped at an event', true),
    reject,
    stop() {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

/** Why a version did not reach a position. */
interface MissedPosition {
  readonly position: GlobalPosition;
  readonly reached: GlobalPosition;
  readonly why: string;
  /** Whether the version has stopped at an event. @default false */
  readonly stopped?: boolean;
  /** Whether the database of the version does not respond: how far it is now is unknown. @default false */
  readonly isAway?: boolean;
  /** Undefined if the log can't be asked. */
  readonly head?: GlobalPosition | undefined;
}

export function positionTimeout({ id, name, version }: Projection, missed: MissedPosition): RefoldError {
  const { position, reached, why, stopped = false, isAway = false, head } = missed;
  const state = isAway
    ? 'its database does not respond. Ask again later.'
    : `it is at ${reached}. Ask again, or without demanding a position.`;
  return new RefoldError('POSITION_TIMEOUT', `${id} did not reach position ${position} ${why}; ${state}`, {
    projection: name,
    version,
    position: position.toString(),
    reached: reached.toString(),
    ...(head === undefined ? {} : { head: head.toString() }),
    ...(stopped ? { stopped } : {}),
  });
}

/** Returns undefined if any checkpoint is unknown. */
function leastOf(checkpoints: Checkpoints): GlobalPosition | undefined {
  let least: GlobalPosition | undefined;
  for (const one of checkpoints) {
    if (one === undefined) return undefined;
    if (least === undefined || one < least) least = one;
  }
  return least;
}

function closedError(): Error {
  return new Error('The process is stopping.');
}
