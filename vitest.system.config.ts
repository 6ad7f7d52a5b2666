import { defineConfig } from 'vitest/config';
import { citusLine, findCitus } from './test/support/citus-engine.ts';
import { seed } from './test/support/seed.ts';
import { forceRerunTriggers, reporters, resolve, suite } from './test/support/suite.ts';
import { leftOut, repeatedAnotherDay } from './test/system/left-out.ts';

const citus = findCitus();
const anotherDay = process.env.CI === undefined || process.env.EFFORT === 'whole' ? [] : repeatedAnotherDay(seed);

/** The suite once more on an older PostgreSQL, every test's own server included, and tests that need a package of the system. */
export default defineConfig({
  resolve,
  test: {
    ...suite('system'),
    reporters: [...reporters, { onTestRunStart: () => console.info(citusLine(citus)) }],
    forceRerunTriggers,
    globalSetup: ['test/system/postgres-15-for-the-run.ts', 'test/support/bundled-sources.ts'],
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: [
      ...Object.values(leftOut).flat(),
      ...anotherDay,
      ...(citus.missing === undefined ? [] : ['test/system/citus-*.test.ts']),
    ],
  },
});
