import { defineConfig } from 'vitest/config';
import { forceRerunTriggers, reporters, resolve, suite } from './test/support/suite.ts';
import { testsWithoutServers } from './test/support/test-kinds.ts';

/** The tests that start no server, for the loop of editing and trying. They wait for nothing outside, so that one that hangs is told of soon. */
export default defineConfig({
  resolve,
  test: {
    ...suite('unit'),
    globalSetup: [],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    expect: { poll: { timeout: 15_000 } },
    reporters,
    forceRerunTriggers,
    include: [...testsWithoutServers()],
  },
});
