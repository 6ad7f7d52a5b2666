import { quoted } from './identifiers.ts';

/** The size that pages of events or rows are meant to have at most, in bytes. Pages of usual ones are a fraction of it. */
export const maxPageBytes = 8 * 1024 * 1024;

/** The running size of the rows of {@link withinBytes}: no column has such a name. */
export const runningSize = 'bytes so far';
export const bytesSoFar = quoted(runningSize);

/**
 * The first of these ordered rows whose sizes fit into a page, as a `from` item with their running size; at least one. Sizes are those of the table,
 * so no large value is read for them.
 */
export function withinBytes(rows: string, size: string, bytes = maxPageBytes): string {
  return `(
    select *, sum("size of row") over (rows unbounded preceding) as ${bytesSoFar}
    from (select *, ${size} as "size of row" from ${rows} as item) as sized
  ) as item
  where ${bytesSoFar} - "size of row" < ${bytes} is not false`;
}

/** A compressed value is taken to be 32 times as large: more than that compresses only text that repeats itself. */
export function storedSize(column: string): string {
  return `pg_column_size(${column}) * case when pg_column_compression(${column}) is null then 1 else 32 end`;
}

/** Whether a page may have ended with the row of this running size. */
export function isFull(bytes: unknown, most = maxPageBytes): boolean {
  return Number(bytes ?? 0) >= most;
}
