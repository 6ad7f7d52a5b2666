import { isDecimal } from '../columns/decimal.ts';
import type { JsonValue } from './row-query.ts';

/** Converts a column's value to the form in which it is stored: exact numbers become text. */
export function storedJson(value: unknown): JsonValue {
  if (typeof value === 'bigint') return String(value);
  if (isDecimal(value)) return value.toFixed();
  if (Array.isArray(value)) return value.map(storedJson);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, storedJson(part)]));
  return value as JsonValue; // all other values of a row are JSON already
}

/** Whether one JSON value contains another, like jsonb's `@>`. */
export function jsonHolds(whole: JsonValue, part: JsonValue): boolean {
  // A top-level list also contains its scalar items.
  if (isList(whole) && !isList(part) && !isObject(part)) return whole.some((item) => item === part);
  return holds(whole, part);
}

function holds(whole: JsonValue, part: JsonValue): boolean {
  if (isList(part)) return isList(whole) && part.every((wanted) => whole.some((item) => holds(item, wanted)));
  if (isObject(part)) {
    if (!isObject(whole)) return false;
    return Object.entries(part).every(
      ([name, wanted]) => Object.hasOwn(whole, name) && holds(whole[name] as JsonValue, wanted), // `whole` has the name
    );
  }
  return whole === part;
}

type JsonObject = { readonly [name: string]: JsonValue };

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !isList(value);
}
