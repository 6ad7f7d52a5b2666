import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { Shell } from '../support/shell.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { RealNames, tutorialSteps } from './tutorial-page.ts';
import { TutorialReader } from './tutorial-reader.ts';

const steps = tutorialSteps(readFileSync('docs/tutorial.md', 'utf8'));
const sources = globSync('examples/shopping-cart/**/*.ts').map((file) => readFileSync(file, 'utf8'));

let database: TestDatabase;
let shell: Shell;
let reader: TutorialReader;
let failed: string | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  shell = new Shell({ cwd: resolve('.'), env: { DATABASE_URL: database.url, PORT: '0', HOST: '127.0.0.1' } });
  reader = new TutorialReader(shell, sources);
});
afterAll(async () => {
  await shell.close();
  await database.drop();
});

test('the page has the whole story', () => {
  expect(steps.length).toBeGreaterThanOrEqual(12);
});

test('output other than the page shows is noticed', () => {
  const own = new RealNames();
  const shown = 'version  lag  owner\na@1        0  laptop:101\na@2     ~212  laptop:102\n…';
  expect(own.fits('version  lag  owner\na@1        0  vm:7\na@2        0  vm:8\n', shown)).toBe(false);
  expect(own.fits('version  lag  owner\na@1        1  vm:7\na@2        5  vm:8\n', shown)).toBe(false);
  expect(own.fits('version  lag  owner\na@1        0  vm:7\na@2    1,005  vm:8\nand more', shown)).toBe(true);
  expect(own.fits('vm:8', 'laptop:101')).toBe(false);
  expect(own.fits('vm:7', 'laptop:101')).toBe(true);
  expect(own.inReality('kill laptop:102')).toBe('kill vm:8');
});

// Each step continues where the one before it ended.
describe('docs/tutorial.md shows the code that runs, and what its commands and operations return:', () => {
  test.each(steps)('$title', async ({ title, blocks }) => {
    expect(failed, 'an earlier step failed').toBe(undefined);
    onTestFailed(() => {
      failed ??= title;
      console.info(`The last output was:\n${reader.lastOutput}`);
    });
    for (const block of blocks) await reader.execute(block);
  }, 900_000); // many programs start one after another, on a machine that may be busy
});

test('the worker that follows a killed one continues where that one was, half-way', () => {
  const owns = /^cart_summary@2: this process owns its processor, and continues after position (\d+)$/;
  const [first, second] = shell.logged().flatMap((message) => owns.exec(message)?.[1] ?? []);
  expect(Number(first)).toBe(0);
  expect(Number(second)).toBeGreaterThan(0);
  expect(Number(second)).toBeLessThan(1000);
});
