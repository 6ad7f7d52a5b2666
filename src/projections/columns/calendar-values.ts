import { invalidRow, matching, show, wrongType } from './invalid-row.ts';

const datePattern = /^\d{4}-\d{2}-\d{2}$/;
const timestampPattern = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)$/i;

export function checkDate(value: unknown, path: string): string {
  const text = matching(value, path, datePattern, `a date such as '2026-01-31'`);
  if (!isCalendarDay(text)) throw wrongType(path, `a date of the calendar`, value);
  return text;
}

// Excludes the year 0, which PostgreSQL writes differently, and dates such as February 30, which `Date` reads as March 2.
function isCalendarDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().slice(0, 10) === text && !text.startsWith('0000');
}

export function checkTimestamp(value: unknown, path: string): string {
  const text = matching(value, path, timestampPattern, `a time with its zone, such as '2026-01-31T12:00:00Z'`);
  if (isFinerThanMicroseconds(text)) {
    const problem = `column '${path}' expects a time to the microsecond at most`;
    throw invalidRow(`${problem}, found ${show(text)}.`, ' Round or cut it in evolve.', `${problem}.`);
  }
  const canonical = isCalendarDay(text.slice(0, 10)) ? canonicalTimestamp(text) : undefined;
  if (canonical === undefined || !isCalendarDay(canonical.slice(0, 10)))
    throw wrongType(path, 'a time of the calendar', value);
  return canonical;
}

/** Whether PostgreSQL could not keep the time exactly. */
export function isFinerThanMicroseconds(time: string): boolean {
  return /\.\d{6}\d*[1-9]/.test(time);
}

/**
 * One text per instant: UTC, at least milliseconds, microseconds if they are not zero. `Date` has milliseconds only, so the digits of the
 * fraction are copied from the text.
 */
export function canonicalTimestamp(text: string): string | undefined {
  const match = /^(.{10})[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-].*)$/i.exec(text);
  if (!match) return undefined;
  const [, day, minutes, seconds = '00', fraction = '', zone = 'Z'] = match;
  const offset = /^[+-]\d{2}$/.test(zone)
    ? `${zone}:00`
    : /^[+-]\d{4}$/.test(zone)
      ? `${zone.slice(0, 3)}:${zone.slice(3)}`
      : zone.toUpperCase();
  const instant = new Date(`${day}T${minutes}:${seconds}${offset}`);
  if (Number.isNaN(instant.getTime()) || instant.getUTCFullYear() > 9999 || instant.getUTCFullYear() < 1)
    return undefined;
  const digits = fraction
    .slice(0, 6)
    .padEnd(6, '0')
    .replace(/0{1,3}$/, '');
  return `${instant.toISOString().slice(0, 19)}.${digits}Z`;
}
