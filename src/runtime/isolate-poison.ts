import { RefoldError } from '../errors.ts';
import { type GlobalPosition, globalPosition } from '../events/global-position.ts';

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
  poison: (position: GlobalPosition, error: RefoldError) => Promise<'skip' | 'stop'>,
): Promise<GlobalPosition> {
  try {
    await work(after, upTo);
    return upTo;
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    if (upTo - after <= 1n) return (await poison(upTo, error)) === 'skip' ? upTo : after;
    const middle = globalPosition(after + (upTo - after) / 2n);
    const reached = await isolatePoison(after, middle, work, poison);
    return reached < middle ? reached : isolatePoison(middle, upTo, work, poison);
  }
}

/**
 * Whether PostgreSQL refused the values themselves: the same statement over the same events fails again. Class 21 is a key that a batch's
 * rows hold twice, 22 a value, 23 a constraint, 54000 a text too long for its index.
 */
function isRefusedValue(error: unknown): error is RefoldError {
  return error instanceof RefoldError && /^(2[123]...|54000)$/.test(String(error.fields.sqlState));
}
