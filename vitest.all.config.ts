import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, sequence, workers } from './test/support/suite.ts';

/** What CI runs: the suite and the system run as one, so that the one starts while the last tests of the other still wait. */
export default defineConfig({
  test: {
    projects: ['vitest.config.ts', 'vitest.system.config.ts'],
    reporters,
    forceRerunTriggers,
    maxWorkers: workers,
    sequence,
  },
});
