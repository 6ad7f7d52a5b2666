import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ViteUserConfig } from 'vitest/config';
import { announcements } from './announcements.ts';
import { ciReporter } from './ci-reporter.ts';
import { seed } from './seed.ts';
import { SlowFirst } from './slow-first.ts';

/** As Node resolves it. Otherwise Vite would load `graphql/index.mjs` for our files, and Node `graphql/index.js` for the packages that they use. */
export const resolve: NonNullable<ViteUserConfig['resolve']> = {
  alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }],
};

/** Many tests wait for PostgreSQL, processes or expiring leases: three files at a time keep the two cores of a small machine busy. */
export const workers = 3;

/** In CI a run also writes its numbers and its failures. */
export const reporters = ['default', announcements(), ...(process.env.CI === undefined ? [] : [ciReporter()])];

/** Files that no test imports and many read: `--changed` runs all tests if one of them has changed. */
export const forceRerunTriggers = ['**/package.json', '**/vitest*.config.ts', '**/migrations/**'];

export const sequence = { sequencer: SlowFirst };

/** The settings that all Vitest runs of this project share. */
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
    // Each worker loads the sources and their imports once, not once per file: loading is half of the work of most files.
    isolate: false,
    // No test measures time. This timeout only ends a test that would hang. Less would end tests that pass: twenty take 20 to 60 seconds on two
    // idle cores, and machines that are busy with other things are five times slower. Unit tests, which wait for nothing, have less.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 240_000 } },
    retry: 0,
  };
}
