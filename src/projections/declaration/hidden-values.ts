import type { Access } from '../../access.ts';
import type { RefoldError } from '../../errors.ts';
import type { Column, Columns } from '../columns/column.ts';
import type { Projection } from './projection.ts';

/**
 * The columns whose values are in no message, log or status: those that are marked `personal()`, those with a rule of access, and all of them
 * where a rule says who may read which rows.
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

/** Stands in messages for a value that is hidden. */
export const hiddenText = '(hidden)';

/** Whether messages name no rows of the projection, and no streams: these are named as rows are, more often than not. */
export function hidesKey({ hidden, keyColumns }: Pick<Projection, 'hidden' | 'keyColumns'>): boolean {
  return keyColumns.some((name) => hidden.has(name));
}

/** A text without the values that are in `from`, which may be anything: an event's payload, a row. */
export function withoutValues(text: string, ...from: readonly unknown[]): string {
  const values = new Set<string>();
  for (const one of from) collect(one, values);
  // The longest first: one value may be a part of another.
  const sorted = [...values].sort((a, b) => b.length - a.length);
  return sorted.reduce((left, value) => left.replaceAll(value, hiddenText), text);
}

/** What is wrong with a row, as its codec says it without the value; undefined where the error is none of the codec's. */
export function problemWithoutValue(error: unknown): string | undefined {
  const { code, fields } = (error ?? {}) as Partial<RefoldError>; // of anything else they are undefined, or no texts
  if (code !== 'INVALID_ROW') return undefined;
  return typeof fields?.withoutValue === 'string' ? fields.withoutValue : undefined;
}

// A shorter text is a part of ordinary words, and tells next to nothing.
const shortestHidden = 3;

function collect(value: unknown, into: Set<string>): void {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collect(part, into);
    // A decimal, as messages show it.
    if ('toFixed' in value) add(String(value), into);
    return;
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') add(String(value), into);
}

function add(text: string, into: Set<string>): void {
  if (text.length >= shortestHidden) into.add(text);
}
