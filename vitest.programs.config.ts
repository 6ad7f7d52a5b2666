import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, resolve, suite } from './test/support/suite.ts';
import { testsOfPrograms } from './test/support/test-kinds.ts';

/** The tests that start programs: the command line, samples, documentation that is executed, the admin page, processes that are killed. */
export default defineConfig({
  resolve,
  test: {
    ...suite('programs'),
    globalSetup: ['test/support/postgres-for-the-run.ts', 'test/support/bundled-sources.ts'],
    reporters,
    forceRerunTriggers,
    include: [...testsOfPrograms()],
  },
});
