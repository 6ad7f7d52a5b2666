import { defineConfig } from 'vitest/config';
import { suite } from './test/support/suite.ts';

export default defineConfig({
  test: { ...suite('suite'), include: ['test/**/*.test.ts', 'examples/**/*.test.ts'], exclude: ['test/system/**'] },
});
