import { defineConfig } from 'vitest/config';
import { resolve, suite } from './test/support/suite.ts';

/** What needs a package of the system: tests of its own, and the database tests once more on an older PostgreSQL. */
export default defineConfig({
  resolve,
  test: {
    ...suite('system'),
    globalSetup: ['test/system/postgres-15-for-the-run.ts'],
    include: ['test/system/**/*.test.ts', 'test/store/**/*.test.ts', 'test/support/**/*.test.ts'],
  },
});
