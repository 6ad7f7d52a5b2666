import { isOwnDecimal } from './decimal.ts';

/**
 * Freezes a value and all that it holds, so that a mutation throws where it happens. What is frozen already is not walked again. Decimals are
 * left as they are: the library's `mod` changes the sign of its operand for a moment.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || isOwnDecimal(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
