import { inject } from 'vitest';

/**
 * How much a test does: the whole, or, where the same test runs again on another PostgreSQL, less of what is expensive and hardly
 * depends on the server. The run of the unit tests has no server to tell of.
 */
export function effort(whole: number, again: number): number {
  return inject('postgres')?.again ? again : whole;
}
