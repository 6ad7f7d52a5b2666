import { inject } from 'vitest';

/**
 * How much a test does: everything, or less of what is expensive and hardly depends on the server, if the same test runs again on another
 * PostgreSQL. The run of the unit tests has no server to consider.
 */
export function effort(whole: number, again: number): number {
  return inject('postgres')?.again ? again : whole;
}
