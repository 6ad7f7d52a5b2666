import type { Access } from '../../access.ts';
import type { RefoldError } from '../../errors.ts';
import type { Column, Columns } from '../columns/column.ts';
import type { Projection } from '../projection/projection.ts';

/**
 * The columns whose values never appear in messages, logs or status: those marked `personal()`, those with an access rule, and all columns
 * if a rule restricts the rows.
 */
export function hiddenColumns(columns: Columns, access: Access | undefined): ReadonlySet<string> {
  const rules = typeof access === 'object' ? access : undefined;
  const hidden = Object.entries(columns).filter(
    ([name, column]) => rules?.rows || rules?.columns?.[name] || isPersonal(column),
  );
  return new Set(hidden.map(([name]) => name));
}

function isPersonal({ type, flags }: Column): boolean {
  if (flags.personal) return true;
  if (type.kind === 'object') return Object.values(type.fields).some(isPersonal);
  return type.kind === 'list' && isPersonal(type.item);
}

/** Replaces a hidden value in messages. */
export const hiddenText = '(hidden)';

/** Whether messages must not name rows of the projection, nor streams: stream ids usually equal row keys. */
export function hidesKey({ hidden, keyColumns }: Pick<Projection, 'hidden' | 'keyColumns'>): boolean {
  return keyColumns.some((name) => hidden.has(name));
}

/** Replaces in a text all values that occur in `from`, which may be anything: an event's payload, a row. */
export function withoutValues(text: string, ...from: readonly unknown[]): string {
  const values = new Set<string>();
  for (const one of from) collect(one, values);
  // Longest first, because one value may be part of another.
  const sorted = [...values].sort((a, b) => b.length - a.length);
  return sorted.reduce((left, value) => left.replaceAll(value, hiddenText), text);
}

/** The codec's description of an invalid row, without the value. Undefined if the error is not from the codec. */
export function problemWithoutValue(error: unknown): string | undefined {
  const { code, fields } = (error ?? {}) as Partial<RefoldError>; // undefined or not text for any other error
  if (code !== 'INVALID_ROW') return undefined;
  return typeof fields?.withoutValue === 'string' ? fields.withoutValue : undefined;
}

// A shorter value occurs in ordinary words, and reveals almost nothing.
const shortestHidden = 3;

function collect(value: unknown, into: Set<string>): void {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collect(part, into);
    // A decimal, in the form that messages show.
    if ('toFixed' in value) add(String(value), into);
    return;
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') add(String(value), into);
}

function add(text: string, into: Set<string>): void {
  if (text.length >= shortestHidden) into.add(text);
}
