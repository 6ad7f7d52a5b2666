import createBig, { type Big } from 'big.js';

/**
 * An exact decimal of any length (big.js). Immutable: `plus`, `minus`, `times`, `cmp` … return new values. `t.decimal` columns hold these.
 * No step between event and client uses a float.
 */
export type Decimal = Big;

// A separate constructor: an application's settings of the shared Big do not affect Refold.
const LibraryDecimal = createBig();

/** The internal fields of a big.js decimal. */
interface Parts {
  /** 1 or -1. */
  s: number;
  /** The exponent of the first digit. */
  e: number;
  /** The digits, without leading or trailing zeros. */
  c: number[];
  constructor: unknown;
}

/**
 * Replaces the library's constructor. The library's operations call it for their operands and results. It parses ordinary texts and numbers
 * itself: the library searches for an exponent with regular expressions, which takes most of the time of `decimal('12.50').times(3)`.
 */
function makeDecimal(this: Parts, value: unknown): void {
  if (!copyDecimal(this, value) && !readDigits(this, value)) {
    // The library throws if the value is not a decimal.
    copyDecimal(this, new LibraryDecimal(value as string));
  }
  this.constructor = makeDecimal;
}

// Has all properties of the library's constructor, because its operations read their settings from there.
const ExactDecimal = Object.assign(makeDecimal, LibraryDecimal) as unknown as typeof LibraryDecimal;
makeDecimal.prototype = LibraryDecimal.prototype;

function copyDecimal(target: Parts, value: unknown): boolean {
  if (!(value instanceof LibraryDecimal)) return false;
  target.s = value.s;
  target.e = value.e;
  target.c = value.c.slice();
  return true;
}

/** Parses digits with an optional point between them. Returns false for anything else. */
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
  // Counted from the end, because leading zeros were skipped.
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
 * Creates an exact decimal from a decimal string, a bigint, a whole number or another decimal.
 *
 * @throws RangeError for a fraction passed as `number`: `0.1 + 0.2` is already inexact. Pass a string.
 * @example
 * decimal('12.50').times(3).toFixed(2) // '37.50'
 */
export function decimal(value: string | bigint | number | Decimal): Decimal {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new RangeError(`decimal(${value}): a fractional number is not exact; pass a string such as '${value}'.`);
  }
  try {
    return new ExactDecimal(typeof value === 'bigint' ? value.toString() : value);
  } catch (cause) {
    throw new RangeError(`decimal('${String(value).slice(0, 40)}'): expected a decimal such as '12.50'.`, { cause });
  }
}

/** Whether a value comes from {@link decimal} or an operation on such a value. It is immutable and need not be copied. */
export function isOwnDecimal(value: unknown): value is Decimal {
  return typeof value === 'object' && value !== null && value.constructor === ExactDecimal;
}

/** Whether a value is a {@link Decimal} of this or another copy of big.js. */
export function isDecimal(value: unknown): value is Decimal {
  return (
    typeof value === 'object' && value !== null && 'c' in value && 'e' in value && 's' in value && 'toFixed' in value
  );
}
