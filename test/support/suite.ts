import type { ViteUserConfig } from 'vitest/config';

/** As Node resolves it: Vite would take `graphql/index.mjs` for our files, and Node `graphql/index.js` for the packages that they use. */
export const resolve: NonNullable<ViteUserConfig['resolve']> = {
  alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }],
};

/** What every Vitest run of this project has in common. In CI it also writes its numbers to `.refold/ci/NAME.json`. */
export function suite(name: string): NonNullable<ViteUserConfig['test']> {
  return {
    globalSetup: ['test/support/postgres-for-the-run.ts'],
    setupFiles: ['test/support/failed-tests.ts'],
    pool: 'forks',
    // Most tests wait for PostgreSQL: two files at a time keep the two cores of a small machine busy.
    maxWorkers: 2,
    // No test measures time: this only ends a test that would hang for ever.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    retry: 0,
    reporters:
      process.env.CI === undefined ? ['default'] : ['default', ['json', { outputFile: `.refold/ci/${name}.json` }]],
  };
}
