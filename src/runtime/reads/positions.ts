import type { PollingOptions } from '../../config/runtime-options.ts';
import { RefoldError } from '../../errors.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { VersionProgress } from '../../projections/projection/version-map.ts';
import type { Notifications } from '../../store/postgres/notifications.ts';
import { checkpointChannel } from '../../store/processors/checkpoints.ts';
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
  reached(projection: Projection, at: PartitionCheckpoint): void;
  /** Discards the known checkpoints, because a version may have gone back. */
  forget(): void;
  /** Ends all waits with an error. */
  close(): void;
}

/** The checkpoint of one partition of a version, and the number of partitions. */
export interface PartitionCheckpoint {
  readonly partition: number;
  readonly partitions: number;
  readonly checkpoint: GlobalPosition;
}

interface Waiter {
  readonly projection: Projection;
  readonly position: GlobalPosition;
  resolve(): void;
  /** Called if the version has stopped before the position. */
  giveUp(): void;
  reject(error: unknown): void;
}

// Most notifications arrive within a millisecond; polling covers those that get lost.
const defaultPolling = { min: 50, max: 1000, step: 50 };

export function createPositions(options: PositionsOptions): Positions {
  const { db, head, polling = defaultPolling } = options;
  /** The checkpoint of each partition of a version; undefined if not known yet. */
  const known = new Map<string, readonly (GlobalPosition | undefined)[]>();
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

  function hear({ id, partition, partitions, checkpoint }: HeardCheckpoint): void {
    const before = known.get(id);
    const checkpoints = Array.from({ length: partitions }, (_, index) =>
      index === partition ? checkpoint : before?.length === partitions ? before[index] : undefined,
    );
    learn(id, checkpoints);
  }

  function learn(id: string, checkpoints: readonly (GlobalPosition | undefined)[]): void {
    const before = known.get(id);
    const moved = before?.length !== checkpoints.length || checkpoints.some((one, index) => one !== before[index]);
    if (moved) poller.quicken();
    // The latest report counts, not the highest: a version rebuilt in place goes back to the beginning.
    known.set(id, checkpoints);
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
    if ((leastOf(known.get(projection.id) ?? []) ?? beginning) >= position) return;
    const timeout = wait.timeout ?? options.timeout;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const isBounded = Number.isFinite(timeout);
    let isOver = false;
    const end = (why: string, stopped: boolean) => {
      if (!isOver)
        void timedOut(projection, position, why, stopped).then((error) => (error ? reject(error) : resolve()), reject);
      isOver = true;
    };
    const waiter: Waiter = {
      projection,
      position,
      resolve,
      giveUp: () => isBounded && end('because it has stopped at an event', true),
      reject,
    };
    const deadline = isBounded ? setTimeout(() => end(`within ${timeout} ms`, false), timeout) : undefined;
    const onAbort = () => reject(wait.signal?.reason);
    wait.signal?.addEventListener('abort', onAbort, { once: true });
    waiters.add(waiter);
    // The position may have been reached without a notification to this process, so poll before waiting.
    poller.wake();
    try {
      await promise;
    } finally {
      waiters.delete(waiter);
      clearTimeout(deadline);
      wait.signal?.removeEventListener('abort', onAbort);
      if (waiters.size === 0) poller.wake(); // it rests
    }
  }

  /** Returns undefined if a last look shows the version at the position: a stalled process may have missed the notification. */
  async function timedOut(
    projection: Projection,
    position: GlobalPosition,
    why: string,
    stopped: boolean,
  ): Promise<RefoldError | undefined> {
    const status = await readVersionStatus(db, projection.name, projection.version).catch(() => undefined);
    const reached = status?.checkpoint ?? leastOf(known.get(projection.id) ?? []) ?? beginning;
    if (reached >= position) return undefined;
    const last = await head().catch(() => undefined);
    return new RefoldError(
      'POSITION_TIMEOUT',
      `${projection.id} did not reach position ${position} ${why}; it is at ${reached}. Ask again, or without demanding a position.`,
      {
        projection: projection.name,
        version: projection.version,
        position: position.toString(),
        reached: reached.toString(),
        ...(last === undefined ? {} : { head: last.toString() }),
        ...(stopped ? { stopped } : {}),
      },
    );
  }

  return {
    waitFor,
    async progress(projection) {
      const { name, version } = projection;
      const [status, last] = await Promise.all([readVersionStatus(db, name, version), head()]);
      const position = status?.checkpoint ?? beginning;
      // The log or the version may have grown between the two reads, but a version is never ahead of the log.
      const end = last > position ? last : position;
      const progress = end === 0n ? 1 : Number((position * 10_000n) / end) / 10_000;
      return { projection: name, version, state: status?.state ?? 'building', position, head: end, progress };
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
    forget: () => known.clear(),
    close() {
      closed = true;
      unsubscribe();
      void poller.stop();
      for (const waiter of waiters) waiter.reject(closedError());
    },
  };
}

interface HeardCheckpoint extends PartitionCheckpoint {
  readonly id: string;
}

/** Parses `cart_summary@2:1042`, or for a partition `cart_summary@2/0/4:1042`. */
function parseCheckpoint(payload: string): HeardCheckpoint | undefined {
  const match = /^([^/]+@\d+)(?:\/(\d{1,2})\/(\d{1,2}))?:(\d{1,15})$/.exec(payload);
  if (!match) return undefined;
  const [, id = '', partition = '0', partitions = '1', checkpoint = ''] = match;
  return {
    id,
    partition: Number(partition),
    partitions: Number(partitions),
    checkpoint: globalPosition(checkpoint),
  };
}

/** Returns undefined if any checkpoint is unknown. */
function leastOf(checkpoints: readonly (GlobalPosition | undefined)[]): GlobalPosition | undefined {
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
