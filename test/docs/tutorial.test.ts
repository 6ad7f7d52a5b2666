import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { Shell } from '../support/shell.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { asShown } from './as-shown.ts';
import { RealNames, type ShownBlock, type TutorialBlock, tutorialSteps } from './tutorial-page.ts';

const steps = tutorialSteps(readFileSync('docs/tutorial.md', 'utf8'));
const sources = globSync('examples/shopping-cart/**/*.ts').map((file) => readFileSync(file, 'utf8'));
const names = new RealNames();

let database: TestDatabase;
let shell: Shell;
let lastOutput = '';
let failed: string | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  shell = new Shell({ cwd: resolve('.'), env: { DATABASE_URL: database.url, PORT: '0', HOST: '127.0.0.1' } });
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
      console.info(`The last output was:\n${lastOutput}`);
    });
    for (const block of blocks) await execute(block);
  }, 900_000); // many programs start one after another, on a machine that may be busy
});

test('the worker that follows a killed one continues where that one was, half-way', () => {
  const owns = /^cart_summary@2: this process owns its processor, and continues after position (\d+)$/;
  const [first, second] = shell.logged().flatMap((message) => owns.exec(message)?.[1] ?? []);
  expect(Number(first)).toBe(0);
  expect(Number(second)).toBeGreaterThan(0);
  expect(Number(second)).toBeLessThan(1000);
});

async function execute(block: TutorialBlock): Promise<void> {
  switch (block.kind) {
    case 'code':
      return expect(
        sources.some((source) => trimmed(source).includes(trimmed(block.source))),
        block.source,
      ).toBe(true);
    case 'commands':
      return looked(block.source, () => runs(block));
    case 'operation':
      return looked(block.source, () => answers(block));
  }
}

function trimmed(code: string): string {
  return code
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim();
}

/** Where looking changes nothing, the reader looks again until the screen shows what the page shows. */
async function looked(source: string, asThePageShows: () => Promise<boolean>): Promise<void> {
  const changesNothing = /^(\{|refold (status|history) )/.test(source.replaceAll(/^#.*\n/gm, ''));
  if (changesNothing) await until(asThePageShows);
  else expect(await asThePageShows(), `${source}${lastOutput}`).toBe(true);
}

async function runs({ source, shown = '' }: ShownBlock): Promise<boolean> {
  const { text, code } = await shell.run(names.inReality(onThisMachine(source)));
  const fits = () => {
    lastOutput = text();
    return names.fits(lastOutput, shown);
  };
  // A process in the background prints when it has started.
  if (/& \w+=\$!\n/.test(source)) await until(fits);
  return fits() && (code !== 0) === /^refold: (?!SIG)/.test(lastOutput);
}

/** With any free port instead of the page's. Builds that the page kills half-way must not end before that, however busy this machine is. */
function onThisMachine(commands: string): string {
  return commands.replaceAll(/\bPORT=\d+ /g, '').replaceAll('PAUSE_MS=200 ', 'PAUSE_MS=500 ');
}

async function answers({ source, shown }: ShownBlock): Promise<boolean> {
  const [gateway = '127.0.0.1:4000'] = /127\.0\.0\.1:\d+/.exec(source) ?? [];
  const response = await fetch(names.inReality(`http://${gateway}/graphql`), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: source }),
  });
  const answer = (await response.json()) as { readonly data?: unknown; readonly errors?: unknown }; // a GraphQL answer
  lastOutput = JSON.stringify(answer, null, 2);
  const whole = JSON.parse(shown ?? expect.fail(`no answer below\n${source}`));
  // The page shows the whole response if it has errors, else only the data.
  const expected = whole.errors ? whole : { data: whole };
  try {
    expect(answer).toEqual(asShown(expected));
    return true;
  } catch {
    return false;
  }
}
