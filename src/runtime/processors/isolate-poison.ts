import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isRowRefusal } from '../../store/tables/refused-rows.ts';

/**
 * Works through the positions in `(after, upTo]`. What fails by its values is halved until the position that fails is alone, so that
 * everything around it is worked through: `work` leaves nothing behind where it throws.
 *
 * @param poison says whether to go on past a position that fails
 * @returns how far it came; below `upTo` where it was not to go on
 */
export async function isolatePoison(
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
    const reached = await isolatePoison(after, middle, work, poison);
    return reached < middle ? reached : isolatePoison(middle, upTo, work, poison);
  }
}
