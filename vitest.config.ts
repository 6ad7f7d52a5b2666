import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, resolve, suite } from './test/support/suite.ts';
import { testsOfPrograms } from './test/support/test-kinds.ts';

/** What runs in the process of its test, with a PostgreSQL beside it: nearly all promises of the library. */
export default defineConfig({
  resolve,
  test: {
    ...suite('suite'),
    reporters,
    forceRerunTriggers,
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['test/system/**', ...testsOfPrograms()],
  },
});
