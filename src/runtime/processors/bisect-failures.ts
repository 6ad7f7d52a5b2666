import type { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isVersionUnknown } from '../../events/read-payload.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';

/**
 * Processes the positions in `(after, upTo]`. If a range fails because of its events or their values, it is bisected until the failing position is alone,
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
): Promise<GlobalPosition> {
  if (after >= upTo) return after;
  try {
    await work(after, upTo);
    return upTo;
  } catch (error) {
    if (!isRowRefusal(error) && !isEvolveFailure(error)) throw error;
    if (upTo - after <= 1n) return (await poison(upTo, error)) === 'skip' ? upTo : after;
    const middle = globalPosition(after + (upTo - after) / 2n);
    const reached = await bisectFailures(after, middle, work, poison);
    return reached < middle ? reached : bisectFailures(middle, upTo, work, poison);
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
