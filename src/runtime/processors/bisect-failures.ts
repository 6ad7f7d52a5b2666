import type { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import { type EventRetries, isEventFailure } from '../dead-letters/event-retries.ts';

export interface BisectOptions {
  /** Try the work of a single position again before `poison`. */
  readonly retries?: Pick<EventRetries, 'run'> | undefined;
  /** Whether an event may be the reason of an error. @default isEventFailure */
  readonly isFailure?: (error: unknown) => boolean;
  /** Asked before `poison`: another reason than the event, such as a table that was altered. It is thrown. @default there is none */
  readonly explain?: ((error: unknown) => Promise<RefoldError | null>) | undefined;
}

/**
 * Processes the positions in `(after, upTo]`. If a range fails because of its events or their values, it is bisected until the failing
 * position is alone,
 * and everything around it is processed. `work` must leave nothing behind when it throws.
 *
 * @param poison decides whether to continue past a failing position
 * @returns how far it came; less than `upTo` if `poison` returned `stop`
 */
export async function bisectFailures(
  after: GlobalPosition,
  upTo: GlobalPosition,
  work: (after: GlobalPosition, upTo: GlobalPosition) => Promise<void>,
  poison: (position: GlobalPosition, error: unknown) => Promise<'skip' | 'stop'>,
  options: BisectOptions = {},
): Promise<GlobalPosition> {
  const { retries, isFailure = isEventFailure, explain } = options;
  if (after >= upTo) return after;
  try {
    await work(after, upTo);
    return upTo;
  } catch (error) {
    if (!isFailure(error)) throw error;
    if (upTo - after <= 1n) return atLast(after, upTo, error);
    const middle = globalPosition(after + (upTo - after) / 2n);
    const reached = await bisectFailures(after, middle, work, poison, options);
    return reached < middle ? reached : bisectFailures(middle, upTo, work, poison, options);
  }

  async function atLast(from: GlobalPosition, position: GlobalPosition, failed: unknown): Promise<GlobalPosition> {
    try {
      if (!retries) throw failed;
      await retries.run(position, () => work(from, position), { failed });
      return position;
    } catch (error) {
      if (!isFailure(error)) throw error;
      const reason = await explain?.(error);
      if (reason) throw reason;
      return (await poison(position, error)) === 'skip' ? position : from;
    }
  }
}

/**
 * Folds up to a position, or up to an event whose payload version is unknown here: another process may know it.
 *
 * @param fold does nothing for positions that it has folded
 * @returns the error of that event; null if there is none
 */
export async function upToUnreadable(
  end: GlobalPosition,
  fold: (end: GlobalPosition) => Promise<void>,
): Promise<RefoldError | null> {
  try {
    await fold(end);
    return null;
  } catch (error) {
    if (!isVersionUnknown(error)) throw error;
    await fold(globalPosition(BigInt(String(error.fields.position)) - 1n));
    return error;
  }
}
