import type { Column } from '../../projections/columns/column.ts';
import { storedJson } from '../../projections/queries/json-containment.ts';
import type { JsonValue } from '../../projections/queries/row-query.ts';
import { patternParts } from '../../projections/queries/text-patterns.ts';
import { badInput, canonicalInput } from './canonical-input.ts';

/** Converts an item of a list to its stored form, for a filter. @throws RefoldError `BAD_USER_INPUT` */
export function itemInside(list: Column, name: string, given: unknown): JsonValue {
  if (list.type.kind !== 'list') throw new TypeError(`'${name}' is no list.`); // guaranteed by the filter's type
  if (given === null) throw badInput(`'${name}' is not searched for null.`);
  return storedScalar(list.type.item, name, given);
}

/**
 * Converts a part of an object, a list of objects or JSON to its stored form, for a filter. For objects, only the given fields are
 * compared.
 *
 * @throws RefoldError `BAD_USER_INPUT` if a column could never contain the part, or if everything contains it
 */
export function partInside(column: Column, name: string, given: unknown): JsonValue {
  const part = partOf(column, name, given, 0);
  // An index finds rows by values; a part without a value would scan the whole index.
  if (!hasValue(part)) throw badInput(`'${name}' is searched for something that has no value in it.`);
  return part;
}

// Deeper than a user interface needs, and far from a stack overflow.
const deepest = 20;

function partOf(column: Column, path: string, given: unknown, depth: number): JsonValue {
  if (depth > deepest) throw badInput(`'${path}' is nested more than ${deepest} levels deep.`);
  if (given === null) {
    if (column.flags.nullable && depth > 0) return null;
    throw badInput(`'${path}' can't be null.`);
  }
  const { type } = column;
  switch (type.kind) {
    case 'object': {
      if (typeof given !== 'object' || Array.isArray(given)) throw badInput(`'${path}' expects an object.`);
      return Object.fromEntries(
        Object.entries(given).map(([field, value]) => {
          const declared = Object.hasOwn(type.fields, field) ? type.fields[field] : undefined;
          if (!declared) throw badInput(`'${path}' has no field '${field}'.`);
          return [field, partOf(declared, `${path}.${field}`, value, depth + 1)];
        }),
      );
    }
    case 'list': {
      if (!Array.isArray(given)) throw badInput(`'${path}' expects a list.`);
      return given.map((item, index) => partOf(type.item, `${path}[${index}]`, item, depth + 1));
    }
    default:
      return storedScalar(column, path, given);
  }
}

function storedScalar(column: Column, path: string, given: unknown): JsonValue {
  const value = canonicalInput(column, path, given);
  return storedJson(value);
}

function hasValue(part: JsonValue): boolean {
  if (typeof part !== 'object' || part === null) return true;
  return Object.values(part).some((value: JsonValue) => hasValue(value));
}

// A trigram index needs three characters in a row. With fewer it would be scanned completely.
const leastCharacters = 3;

/** Checks a pattern to search for. @throws RefoldError `BAD_USER_INPUT` if no index can find it, or if it is not valid */
export function checkPattern(pattern: string, path: string): void {
  const parts = patternParts(pattern);
  if (!parts) throw badInput(`'${path}' ends with a backslash, which escapes nothing. Write two for one.`);
  let [longest, run] = [0, 0];
  for (const part of parts) {
    run = typeof part === 'object' ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  // In a trigram index, the start of a text counts like a character.
  const start = parts.findIndex((part) => typeof part !== 'object');
  const leading = start < 0 ? parts.length : start;
  if (longest >= leastCharacters || leading >= leastCharacters - 1) return;
  throw badInput(
    `'${path}' has fewer than ${leastCharacters} characters in a row to search for. Give more, or use 'startsWith'.`,
  );
}
