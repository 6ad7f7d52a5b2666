import { defineConfig } from 'vitest/config';
import { suite } from './test/support/suite.ts';

export default defineConfig({
  // As Node resolves it: Vite would take `graphql/index.mjs` for our files, and Node `graphql/index.js` for the packages that they use.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: { ...suite('suite'), include: ['test/**/*.test.ts', 'examples/**/*.test.ts'], exclude: ['test/system/**'] },
});
