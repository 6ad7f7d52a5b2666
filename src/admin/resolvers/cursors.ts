import { RefoldError } from '../../errors.ts';
import type { AuditPlace } from '../../runtime/inspection/audit-log.ts';
import type { LetterPlace } from '../../runtime/inspection/letters.ts';

/** The arguments of a list that is read in pages. */
export interface Page {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** An opaque text for a place in a list. */
export function cursor(place: unknown): string {
  return Buffer.from(JSON.stringify(place, (_, value) => (typeof value === 'bigint' ? `${value}n` : value))).toString(
    'base64url',
  );
}

/** What {@link cursor} wrote; null if there is none. @throws RefoldError `BAD_USER_INPUT` */
export function placeAt<T>(after: string | null | undefined, isPlace: (place: unknown) => place is T): T | null {
  if (after === null || after === undefined) return null;
  const place = parsed(after);
  if (isPlace(place)) return place;
  throw new RefoldError('BAD_USER_INPUT', `'after' is not the 'next' of a page of this list.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString(), (_, value) =>
      typeof value === 'string' && /^-?\d{1,19}n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
    );
  } catch {
    return undefined;
  }
}

export const isText = (place: unknown): place is string => typeof place === 'string';
export const isNumber = (place: unknown): place is number => Number.isSafeInteger(place);
export const isBigint = (place: unknown): place is bigint => typeof place === 'bigint' && place >= 0n;

export function isLetterPlace(place: unknown): place is LetterPlace {
  const { of, after } = (place ?? {}) as Partial<Record<keyof LetterPlace, unknown>>; // anything but null can be read by property names
  return typeof of === 'string' && typeof after === 'bigint';
}

export function isAuditPlace(place: unknown): place is AuditPlace {
  const { versions, reactors, away } = (place ?? {}) as Partial<Record<keyof AuditPlace, unknown>>; // as above
  const isPlace = (one: unknown) => one === 'first' || typeof one === 'bigint';
  return (
    typeof versions === 'object' &&
    versions !== null &&
    Object.values(versions).every(isPlace) &&
    (reactors === null || isPlace(reactors)) &&
    Array.isArray(away) &&
    away.every(isText)
  );
}

export function isDiscardPlace(place: unknown): place is { readonly key: readonly [bigint, string] } {
  const key = isKeyPlace(place) && Array.isArray(place.key) ? place.key : [];
  return isBigint(key[0]) && isText(key[1]);
}

export interface KeyPlace {
  readonly key: unknown;
}

export function isKeyPlace(place: unknown): place is KeyPlace {
  return typeof place === 'object' && place !== null && 'key' in place;
}

// A page that takes longer to read than to send serves nobody.
const mostItems = 1000;

/** The size of a page. @throws RefoldError `BAD_USER_INPUT` */
export function pageSize(first: number | null | undefined, usual: number): number {
  const size = first ?? usual;
  if (size >= 1 && size <= mostItems) return size;
  throw new RefoldError('BAD_USER_INPUT', `'first' is from 1 to ${mostItems}, found ${size}.`);
}

export const usualDays = 30;
const mostDays = 366;

/** A number of days. @throws RefoldError `BAD_USER_INPUT` */
export function daysOf(days: number | null | undefined): number {
  const given = days ?? usualDays;
  if (given >= 1 && given <= mostDays) return given;
  throw new RefoldError('BAD_USER_INPUT', `'days' is from 1 to ${mostDays}, found ${given}.`);
}
