import { inject } from 'vitest';

/**
 * How much a test does: everything in CI; less of what is expensive elsewhere, and if the same test runs again on another PostgreSQL, on which
 * it hardly depends. The run of the unit tests has no server to consider.
 */
export function effort(whole: number, less: number): number {
  return process.env.CI === undefined || inject('postgres')?.again ? less : whole;
}
