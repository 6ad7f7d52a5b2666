import { inject } from 'vitest';

/**
 * How much a test does: everything in CI; less of what is expensive elsewhere, and if the same test runs again on another PostgreSQL, on which
 * it hardly depends. The run of the unit tests has no server to consider.
 */
export function effort(whole: number, less: number): number {
  return process.env.CI === undefined || inject('postgres')?.again ? less : whole;
}

/** How many lines of a large real file a test reads, from its beginning: with `WHOLE_FILES=1` all of them, which takes minutes. */
export function linesToRead(inCi: number, less: number): number {
  return process.env.WHOLE_FILES === undefined ? effort(inCi, less) : Number.POSITIVE_INFINITY;
}
