declare const brand: unique symbol;

/**
 * An event's position in the whole log, starting at 1. Rolled-back appends leave gaps. A bigint in code, a decimal string outside (JSON,
 * GraphQL, command line), never a bare number.
 */
export type GlobalPosition = bigint & { readonly [brand]: 'GlobalPosition' };

/** The position before the first event of the log. */
export const beginning = 0n as GlobalPosition; // brands this constant

/** Brands a bigint from PostgreSQL, or parses a decimal string from a client. @throws RangeError for anything else */
export function globalPosition(value: bigint | string): GlobalPosition {
  const position = typeof value === 'string' ? parsePosition(value) : value;
  if (position < 0n) throw new RangeError(`A global position is not negative, found ${position}.`);
  return position as GlobalPosition; // the only other place that brands
}

// 2^47: the lock keys of the horizon hold positions in 48 bits. The bigint columns could hold up to 2^63.
const largestPosition = 2n ** 47n;

function parsePosition(text: string): bigint {
  if (!/^\d{1,15}$/.test(text) || BigInt(text) > largestPosition) {
    throw new RangeError(`Expected a global position (a decimal string such as '1042'), found '${text.slice(0, 40)}'.`);
  }
  return BigInt(text);
}

/** The earlier of two positions. */
export function earlierPosition(a: GlobalPosition, b: GlobalPosition): GlobalPosition {
  return a < b ? a : b;
}

/** The later of two positions. */
export function laterPosition(a: GlobalPosition, b: GlobalPosition): GlobalPosition {
  return a > b ? a : b;
}
