import { InvalidInput } from '../errors.ts';

/**
 * A copy of a value in the form in which the log returns it: keys in the order of `jsonb`, without undefined members, 0 for -0. A fold that reads
 * an event before it is written then sees what every later reader sees.
 *
 * @param subject of the message, such as `The payload of cart's 'Opened'`
 * @throws InvalidInput `INVALID_PAYLOAD` with the path of the first part that JSON would change, or can't hold
 */
export function loggedJson(value: unknown, subject: string): unknown {
  try {
    return loggedPart(value, []);
  } catch (error) {
    if (!(error instanceof NotLoggable)) throw error;
    throw new InvalidInput('INVALID_PAYLOAD', subject, [{ path: error.path, message: error.message }]);
  }
}

class NotLoggable extends Error {
  readonly path: (string | number)[] = [];
}

// Far from a stack overflow, here and in PostgreSQL.
const deepest = 1000;
// Deeper than most values: only then it is worth looking for a circle.
const suspicious = 32;

function loggedPart(value: unknown, within: object[]): unknown {
  switch (typeof value) {
    case 'string':
      if (value.includes('\u0000') || !value.isWellFormed()) throw new NotLoggable(unstorable);
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw new NotLoggable(`is ${value}, which JSON turns into null.`);
      return value + 0; // -0 + 0 is 0
    case 'boolean':
      return value;
    case 'object':
      return value === null ? null : loggedObject(value, within);
    default:
      throw new NotLoggable(`is ${value === undefined ? 'undefined' : `a ${typeof value}`}, which JSON does not have.`);
  }
}

function loggedObject(value: object, within: object[]): object {
  if (within.length > suspicious && within.includes(value)) throw new NotLoggable('is a part of itself.');
  if (within.length === deepest) throw new NotLoggable(`is nested more than ${deepest} levels deep.`);
  within.push(value);
  const result = Array.isArray(value) ? loggedList(value, within) : loggedMembers(value, within);
  within.pop();
  return result;
}

function loggedList(value: readonly unknown[], within: object[]): unknown[] {
  const result: unknown[] = [];
  // By index: a hole is undefined.
  for (let index = 0; index < value.length; index++) {
    try {
      result.push(loggedPart(value[index], within));
    } catch (error) {
      throw at(index, error);
    }
  }
  return result;
}

function loggedMembers(value: object, within: object[]): object {
  if (Object.getPrototypeOf(value) !== Object.prototype || 'toJSON' in value) checkMembersOnly(value);
  const given = value as Record<string, unknown>; // any object
  const result: Record<string, unknown> = {};
  for (const name of inJsonbOrder(Object.keys(given))) {
    try {
      const member = given[name];
      if (member === undefined) continue; // a read of the missing member returns undefined, too
      const part = loggedPart(member, within);
      if (name.includes('\u0000') || !name.isWellFormed()) throw new NotLoggable(`has a name that ${unstorable}`);
      setMember(result, name, part);
    } catch (error) {
      throw at(name, error);
    }
  }
  return result;
}

const unstorable = 'has characters that can’t be stored (NUL or half of a surrogate pair).';

/** Like `result[name] = part`, for any name. */
export function setMember(result: Record<string, unknown>, name: string, part: unknown): void {
  if (name !== '__proto__') result[name] = part;
  else Object.defineProperty(result, name, { value: part, enumerable: true, configurable: true, writable: true });
}

/** A `Date`, a `Map`, a `Uint8Array` and the like are something else in JSON. An instance of an application's class has its members there, too. */
function checkMembersOnly(value: object): void {
  const { toJSON, constructor: made } = value as { toJSON?: unknown; constructor?: { name?: unknown } };
  const isOwnKind = Object.prototype.toString.call(value) === '[object Object]';
  if (isOwnKind && typeof toJSON !== 'function') return;
  const kind = typeof made?.name === 'string' ? made.name : 'object';
  throw new NotLoggable(`is a ${kind}, which JSON turns into something else. Convert it to plain values.`);
}

function at(place: string | number, error: unknown): unknown {
  if (error instanceof NotLoggable) error.path.unshift(place);
  return error;
}

/** Sorts the keys of an object as `jsonb` does: by length in bytes, then by bytes. */
export function inJsonbOrder(keys: string[]): string[] {
  if (keys.length > fewKeys) return keys.sort(compareKeys);
  // Quicker than `sort` for so few.
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] as string; // index < length
    let place = index;
    for (; place > 0 && compareKeys(keys[place - 1] as string, key) > 0; place--)
      keys[place] = keys[place - 1] as string;
    keys[place] = key;
  }
  return keys;
}

const fewKeys = 16;

function compareKeys(a: string, b: string): number {
  if (!isAscii(a) || !isAscii(b))
    return Buffer.byteLength(a) - Buffer.byteLength(b) || Buffer.from(a).compare(Buffer.from(b));
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 127) return false;
  return true;
}
