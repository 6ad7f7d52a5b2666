import { defineConfig } from 'vitest/config';
import { resolve, suite } from './test/support/suite.ts';

export default defineConfig({
  resolve,
  test: { ...suite('suite'), include: ['test/**/*.test.ts', 'examples/**/*.test.ts'], exclude: ['test/system/**'] },
});
