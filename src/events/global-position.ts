declare const brand: unique symbol;

/**
 * An event's place in the order of the whole log: 1, 2, 3… with holes where appends rolled back.
 * A bigint inside, a decimal string outside (JSON, GraphQL, command line), never a bare number.
 */
export type GlobalPosition = bigint & { readonly [brand]: 'GlobalPosition' };

/** Before the first event of the log. */
export const beginning = 0n as GlobalPosition; // brands the one constant

/** Brands a bigint read from PostgreSQL, or parses the decimal string that a client sent; throws a `RangeError` for anything else. */
export function globalPosition(value: bigint | string): GlobalPosition {
  const position = typeof value === 'string' ? parsePosition(value) : value;
  if (position < 0n) throw new RangeError(`A global position is not negative, found ${position}.`);
  return position as GlobalPosition; // the one place that brands
}

// 2^47: the horizon's lock keys carry positions in 48 bits, and bigint columns could hold no more than 2^63.
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
