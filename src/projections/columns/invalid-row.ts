import { RefoldError } from '../../errors.ts';
import { isDecimal } from './decimal.ts';

export function wrongType(path: string, expected: string, value: unknown): RefoldError {
  const problem = `column '${path}' expects ${expected}`;
  return invalidRow(`${problem}, found ${show(value)}.`, '', `${problem}.`);
}

export function show(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (isDecimal(value)) return value.toFixed();
  const text = JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part)) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/**
 * `wayOut` is advice for the developer of the projection. For a value that a client sent, only `problem` is shown. `withoutValue` is for
 * logs that must not contain the value.
 */
export function invalidRow(
  problem: string,
  wayOut = '',
  withoutValue = problem,
  fields: Readonly<Record<string, unknown>> = {},
): RefoldError {
  return new RefoldError('INVALID_ROW', problem + wayOut, { ...fields, problem, withoutValue: withoutValue + wayOut });
}

/** The problem in a codec's error, for a value that a client sent. */
export function problemOf({ message, fields: { problem } }: RefoldError): string {
  return typeof problem === 'string' ? problem : message;
}

export function unstorable(path: string): RefoldError {
  return invalidRow(
    `column '${path}' holds the character U+0000, which can't be stored.`,
    ' Remove it in evolve: PostgreSQL text cannot contain it.',
  );
}

export function matching(value: unknown, path: string, pattern: RegExp, expected: string): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw wrongType(path, expected, value);
  return value;
}

export function expectType<T extends 'string' | 'boolean'>(
  value: unknown,
  type: T,
  path: string,
): T extends 'string' ? string : boolean {
  if (typeof value !== type) throw wrongType(path, `a ${type}`, value);
  return value as T extends 'string' ? string : boolean; // checked above
}
