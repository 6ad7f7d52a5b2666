import createBig, { type Big } from 'big.js';

/**
 * An exact decimal of any length (big.js). Immutable: `plus`, `minus`, `times`, `cmp` … give new values.
 * `t.decimal` columns hold these, from the event to the client; no float is ever on the way.
 */
export type Decimal = Big;

// An own constructor, so that an application's settings of the shared Big never change how Refold counts.
const LibraryDecimal = createBig();

/** What big.js keeps of a decimal. */
interface Parts {
  /** 1 or -1. */
  s: number;
  /** Of the first digit. */
  e: number;
  /** The digits, without zeros at either end. */
  c: number[];
  constructor: unknown;
}

/**
 * Does what the library's constructor does, and is called by its operations for their operands and results. The usual texts and numbers are
 * read here: the library looks for an exponent by patterns, which is most of what `decimal('12.50').times(3)` takes there.
 */
function makeDecimal(this: Parts, value: unknown): void {
  if (!copyDecimal(this, value) && !readDigits(this, value)) {
    // Refuses what is none.
    copyDecimal(this, new LibraryDecimal(value as string));
  }
  this.constructor = makeDecimal;
}

// A constructor with all that the library's own has: its operations look for their settings there.
const ExactDecimal = Object.assign(makeDecimal, LibraryDecimal) as unknown as typeof LibraryDecimal;
makeDecimal.prototype = LibraryDecimal.prototype;

function copyDecimal(target: Parts, value: unknown): boolean {
  if (!(value instanceof LibraryDecimal)) return false;
  target.s = value.s;
  target.e = value.e;
  target.c = value.c.slice();
  return true;
}

/** Reads digits with or without a point between them; false for all else. */
function readDigits(target: Parts, value: unknown): boolean {
  const text = typeof value === 'number' && !Object.is(value, -0) ? String(value) : value;
  if (typeof text !== 'string') return false;
  const start = text.startsWith('-') ? 1 : 0;
  const digits: number[] = [];
  let point = -1;
  for (let index = start; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48;
    if (digit >= 0 && digit <= 9) {
      if (digit > 0 || digits.length > 0) digits.push(digit);
    } else if (digit === -2 && point < 0 && index > start) point = index;
    else return false;
  }
  if (text.length === start) return false;
  // Counted from behind, since zeros before the first digit were left out.
  const behindPoint = point < 0 ? 0 : text.length - point - 1;
  const exponent = digits.length - behindPoint - 1;
  while (digits.at(-1) === 0) digits.pop();
  target.s = start === 1 ? -1 : 1;
  target.e = digits.length === 0 ? 0 : exponent;
  if (digits.length === 0) digits.push(0);
  target.c = digits;
  return true;
}

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

/** Whether a value was made by {@link decimal} or is a result of what was: immutable, so that it need not be copied. */
export function isOwnDecimal(value: unknown): value is Decimal {
  return typeof value === 'object' && value !== null && value.constructor === ExactDecimal;
}

/** Whether a value is a {@link Decimal}, of this or another copy of big.js. */
export function isDecimal(value: unknown): value is Decimal {
  return (
    typeof value === 'object' && value !== null && 'c' in value && 'e' in value && 's' in value && 'toFixed' in value
  );
}
