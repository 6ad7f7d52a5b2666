import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';

/**
 * Processes the positions in `(after, upTo]`. If a range fails because of its values, it is bisected until the failing position is alone,
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
  try {
    await work(after, upTo);
    return upTo;
  } catch (error) {
    if (!isRowRefusal(error)) throw error;
    if (upTo - after <= 1n) return (await poison(upTo, error)) === 'skip' ? upTo : after;
    const middle = globalPosition(after + (upTo - after) / 2n);
    const reached = await bisectFailures(after, middle, work, poison);
    return reached < middle ? reached : bisectFailures(middle, upTo, work, poison);
  }
}
