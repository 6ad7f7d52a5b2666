import { inJsonbOrder, setMember } from '../../events/logged-json.ts';
import { unstorable, wrongType } from './invalid-row.ts';
import { listParts } from './list-parts.ts';
import { storableText } from './text-values.ts';

/**
 * Returns a JSON value in the form in which a `jsonb` column returns it, with keys sorted by length, then by bytes. An `evolve` that lists
 * keys must see the same order before and after a reload. The result is frozen, because later values may share its parts.
 *
 * `before`: an earlier result of this function. Its objects and lists that occur in the new value are not checked again.
 */
export function checkJson(value: unknown, path: string, before?: unknown): unknown {
  const canonical = canonicalOrRefused(value, path, before);
  if (canonical === undefined || canonical === null) throw wrongType(path, 'a JSON value', value);
  return canonical;
}

function canonicalOrRefused(value: unknown, path: string, before: unknown): unknown {
  try {
    return canonicalPart(value, '', before);
  } catch (error) {
    // Report a problem of the whole value before one of a text inside it.
    const text = jsonText(value);
    if (text === undefined || text === 'null') throw wrongType(path, 'a JSON value', value);
    if (/(^|[^\\])(\\\\)*\\u0000/.test(text)) throw unstorable(path);
    throw error;
  }
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined; // a bigint or a cycle
  }
}

/** What `JSON.stringify` writes for a member with this key, in canonical form; undefined if it omits the member. */
function canonicalPart(value: unknown, key: string | number, before: unknown): unknown {
  if (value === before) return before;
  switch (typeof value) {
    case 'string':
      return storableText(value, '');
    case 'number':
      return Number.isFinite(value) ? value + 0 : null; // -0 + 0 is 0
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      if (!isPlain(value)) return partOfText(value, key);
      return Array.isArray(value) ? listParts(value, before, listPart) : canonicalObject(value, before);
    default:
      return partOfText(value, key);
  }
}

/** Whether `JSON.stringify` writes exactly the value's own members. */
function isPlain(value: object): boolean {
  if ('toJSON' in value && typeof value.toJSON === 'function') return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

function partOfText(value: unknown, key: string | number): unknown {
  const parsed = JSON.parse(JSON.stringify({ [key]: value })) as Record<string, unknown>;
  return Object.hasOwn(parsed, key) ? canonicalPart(parsed[key], key, undefined) : undefined;
}

function listPart(entry: unknown, index: number, before: unknown): unknown {
  return canonicalPart(entry, index, before) ?? null;
}

function canonicalObject(value: object, before: unknown): object {
  const given = value as Record<string, unknown>; // any object
  const known = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  const result: Record<string, unknown> = {};
  for (const key of inJsonbOrder(Object.keys(given))) {
    const name = key.toWellFormed();
    const part = canonicalPart(given[key], key, Object.hasOwn(known, name) ? known[name] : undefined);
    if (part === undefined) continue;
    storableText(name, '');
    setMember(result, name, part);
  }
  return Object.freeze(result);
}
