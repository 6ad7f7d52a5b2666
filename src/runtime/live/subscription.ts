import { RefoldError } from '../../errors.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { Follower } from './follower.ts';

/** One subscription, as it moves from version to version. */
export interface Subscription<T> {
  /**
   * Begins to watch a version; what it gives is never older than what it gave before.
   *
   * @throws RefoldError `BAD_USER_INPUT` for what no version has, `PROJECTION_SWITCHED` for what only this one has not.
   */
  attach(follower: Follower): void;
  detach(): void;
  /** The next message; undefined while there is none. */
  take(): T | undefined;
}

/** The version that is active now has not what a subscription reads. */
export function projectionSwitched(from: Projection, to: Projection, columns: readonly string[]): RefoldError {
  const names = columns.map((name) => `'${name}'`).join(', ');
  return new RefoldError(
    'PROJECTION_SWITCHED',
    `${to.id} is active now, and does not have what this subscription to ${from.id} reads: ${names}. Subscribe again.`,
    { projection: to.name, from: from.version, to: to.version, columns },
  );
}

/** The version that is active now may have other rows for the subscriber. */
export function accessSwitched(from: Projection, to: Projection): RefoldError {
  return new RefoldError(
    'PROJECTION_SWITCHED',
    `${to.id} is active now, with other access rules than ${from.id}. Subscribe again.`,
    { projection: to.name, from: from.version, to: to.version, columns: [] },
  );
}
