import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, resolve, suite } from './test/support/suite.ts';

export default defineConfig({
  resolve,
  test: {
    ...suite('suite'),
    reporters,
    forceRerunTriggers,
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['test/system/**'],
  },
});
