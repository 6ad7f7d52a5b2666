import type { Columns } from './column.ts';
import type { Row } from './row-codec.ts';

const fixed: ReadonlySet<string> = new Set([
  'integer',
  'bigint',
  'boolean',
  'uuid',
  'date',
  'timestamptz',
  'decimal',
  'enum',
]);

/** The names of the columns whose values can be large. */
export function largeColumns(columns: Columns): string[] {
  return Object.keys(columns).filter((name) => !fixed.has(columns[name]?.type.kind ?? ''));
}

/**
 * Returns a function that tells about how many bytes the values of a row take that can be large. Lists, objects and JSON of a row are frozen, so each of
 * them is measured once.
 */
export function rowSizeOf(columns: Columns): (row: Row) => number {
  const names = largeColumns(columns);
  const measured = new WeakMap<object, number>();
  return (row) => {
    let size = 0;
    for (const name of names) size += valueSize(row[name], measured);
    return size;
  };
}

/** Returns about how many bytes a value takes. @param measured the sizes of objects that do not change */
export function valueSize(value: unknown, measured?: WeakMap<object, number>): number {
  if (typeof value === 'string') return value.length;
  if (value === null || typeof value !== 'object') return 8;
  if (value instanceof Uint8Array) return value.length;
  const known = measured?.get(value);
  if (known !== undefined) return known;
  let size = 0;
  for (const part of Object.values(value)) size += valueSize(part, measured);
  measured?.set(value, size);
  return size;
}
