import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ViteUserConfig } from 'vitest/config';
import { announcements } from './announcements.ts';
import { ciReporter } from './ci-reporter.ts';
import { seed } from './seed.ts';
import { SlowFirst } from './slow-first.ts';

/** As Node resolves it: Vite would take `graphql/index.mjs` for our files, and Node `graphql/index.js` for the packages that they use. */
export const resolve: NonNullable<ViteUserConfig['resolve']> = {
  alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }],
};

/** Many tests wait, for PostgreSQL, for processes, for leases to end: three files at a time keep the two cores of a small machine busy. */
export const workers = 3;

/** In CI a run also leaves its numbers and what failed. */
export const reporters = ['default', announcements(), ...(process.env.CI === undefined ? [] : [ciReporter()])];

/** What no test imports and many read: `--changed` runs all tests where one of them is. */
export const forceRerunTriggers = ['**/package.json', '**/vitest*.config.ts', '**/migrations/**'];

export const sequence = { sequencer: SlowFirst };

/** What every Vitest run of this project has in common. */
export function suite(name: string): NonNullable<ViteUserConfig['test']> {
  return {
    name,
    globalSetup: ['test/support/postgres-for-the-run.ts'],
    // For the many processes that tests start, which import the same files.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'refold-compile-cache'), SEED: String(seed) },
    setupFiles: ['test/support/failed-tests.ts', 'test/support/seeded-properties.ts'],
    pool: 'forks',
    maxWorkers: workers,
    sequence,
    // Each worker loads the sources and what they import once, not for each file: half of the work of most files.
    isolate: false,
    // No test measures time: this only ends a test that would hang for ever, also on a machine that is busy with other things. Unit tests have less.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 240_000 } },
    retry: 0,
  };
}
