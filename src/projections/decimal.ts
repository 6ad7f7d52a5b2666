import createBig, { type Big } from 'big.js';

/**
 * An exact decimal of any length (big.js). Immutable: `plus`, `minus`, `times`, `cmp` … give new values.
 * `t.decimal` columns hold these, from the event to the client; no float is ever on the way.
 */
export type Decimal = Big;

// An own constructor, so that an application's settings of the shared Big never change how Refold counts.
const ExactDecimal = createBig();

/**
 * Makes an exact decimal from a decimal string, a bigint, a whole number or another decimal.
 *
 * @throws RangeError for a fraction given as `number`: `0.1 + 0.2` has already lost its exactness. Give it as a string.
 * @example
 * decimal('12.50').times(3).toFixed(2) // '37.50'
 */
export function decimal(value: string | bigint | number | Decimal): Decimal {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new RangeError(`decimal(${value}): a number is no exact decimal; give a string such as '${value}'.`);
  }
  try {
    return new ExactDecimal(typeof value === 'bigint' ? value.toString() : value);
  } catch (cause) {
    throw new RangeError(`decimal('${String(value).slice(0, 40)}'): expected a decimal such as '12.50'.`, { cause });
  }
}

/** Whether a value is a {@link Decimal}, of this or another copy of big.js. */
export function isDecimal(value: unknown): value is Decimal {
  return (
    typeof value === 'object' && value !== null && 'c' in value && 'e' in value && 's' in value && 'toFixed' in value
  );
}
