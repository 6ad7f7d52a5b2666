import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, sequence, workers } from './test/support/suite.ts';

/** What CI runs: all tests in one run, so that the tests of one kind start while the last ones of another still wait. */
export default defineConfig({
  test: {
    projects: ['vitest.programs.config.ts', 'vitest.config.ts', 'vitest.system.config.ts'],
    reporters,
    forceRerunTriggers,
    maxWorkers: workers,
    sequence,
  },
});
