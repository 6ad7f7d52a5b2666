import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { Follower } from './follower.ts';

/** One subscription, which can move from version to version. */
export interface LiveSubscription<T> {
  /**
   * Starts to watch a version. It never delivers a state older than one delivered before.
   *
   * @throws RefoldError `BAD_USER_INPUT` for columns that no version has, `PROJECTION_SWITCHED` for columns that only this version lacks.
   */
  attach(follower: Follower): void;
  detach(): void;
  /** Returns the next message; undefined while there is none. */
  take(): T | undefined;
}

/** The error if the newly active version lacks columns that a subscription reads. */
export function projectionSwitched(from: Projection, to: Projection, columns: readonly string[]): RefoldError {
  const names = columns.map((name) => `'${name}'`).join(', ');
  return new RefoldError(
    'PROJECTION_SWITCHED',
    `${to.id} is active now, and does not have what this subscription to ${from.id} reads: ${names}. Subscribe again.`,
    { projection: to.name, from: from.version, to: to.version, columns },
  );
}

/** The error if the newly active version may show the subscriber other rows. */
export function accessSwitched(from: Projection, to: Projection): RefoldError {
  return new RefoldError(
    'PROJECTION_SWITCHED',
    `${to.id} is active now, with other access rules than ${from.id}. Subscribe again.`,
    { projection: to.name, from: from.version, to: to.version, columns: [] },
  );
}
