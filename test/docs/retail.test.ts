import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { Shell } from '../support/shell.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { tutorialSteps } from './tutorial-page.ts';
import { TutorialReader } from './tutorial-reader.ts';

const steps = tutorialSteps(readFileSync('docs/retail.md', 'utf8'));
const sources = globSync('examples/online-retail/**/*.ts').map((file) => readFileSync(file, 'utf8'));

let database: TestDatabase;
let shell: Shell;
let reader: TutorialReader;
let failed: string | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  // The real file, if its variable names one.
  const { REFOLD_RETAIL_FILE = '' } = process.env;
  shell = new Shell({
    cwd: resolve('.'),
    env: { DATABASE_URL: database.url, PORT: '0', HOST: '127.0.0.1', REFOLD_RETAIL_FILE },
  });
  reader = new TutorialReader(shell, sources);
});
afterAll(async () => {
  await shell.close();
  await database.drop();
});

test('the page has the whole life of a version', () => {
  expect(steps.map(({ title }) => title)).toHaveLength(7);
});

// Each step continues where the one before it ended.
describe('docs/retail.md shows the code that runs, and what its commands and operations return:', () => {
  test.each(steps)('$title', async ({ title, blocks }) => {
    expect(failed, 'an earlier step failed').toBe(undefined);
    onTestFailed(() => {
      failed ??= title;
      console.info(`The last output was:\n${reader.lastOutput}`);
    });
    for (const block of blocks) await reader.execute(block);
  }, 900_000); // many programs start one after another, on a machine that may be busy
});
