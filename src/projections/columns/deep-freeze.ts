import { isOwnDecimal } from './decimal.ts';

/**
 * Freezes a value and everything in it. A mutation then throws where it happens. Frozen values are not visited again. Decimals are not
 * frozen: the library's `mod` changes the sign of its operand for a moment.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || isOwnDecimal(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
