import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type CliOptions, runCli, startCli } from '../support/cli.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const examples = join(import.meta.dirname, '../../examples');

/** The examples that start with `npm start` in their folder. Each README shows operations and their responses. */
const readmes = ['bank', 'hotel', 'online-retail', 'outbox-relay'].map(
  (name) => [name, readFileSync(join(examples, name, 'README.md'), 'utf8')] as const,
);

function operationsOf(readme: string) {
  return [...readme.matchAll(/```graphql\n(.*?)```\n+```json\n(.*?)```/gs)].map(
    ([, operation = '', response = '']) => [operation, JSON.parse(response)] as const,
  );
}

/** In a README, `…` stands for anything. */
function withAnything(shown: unknown): unknown {
  if (shown === '…') return expect.anything();
  if (Array.isArray(shown)) return shown.map(withAnything);
  if (shown === null || typeof shown !== 'object') return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, withAnything(value)]));
}

interface Answer {
  readonly data: unknown;
  readonly errors?: unknown;
}

async function ask(url: string, query: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return (await response.json()) as Answer;
}

function allActive({ data }: Answer): boolean {
  const { projections } = (data as { _meta: { projections: { state: string; lag: string }[] } })._meta; // as selected
  return projections.every(({ state, lag }) => state === 'ACTIVE' && lag === '0');
}

describe.each(readmes)('the README of %s', (name, readme) => {
  test('fits on a screen', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(80);
    expect(operationsOf(readme).length).toBeGreaterThan(0);
  });

  test('shows the real responses, after one command in the folder', async () => {
    const cwd = join(examples, name);
    expect(readme).toContain('npm start');
    const { scripts } = JSON.parse(await readFile(join(cwd, 'package.json'), 'utf8')) as { scripts: { start: string } };
    const [node, main, ...cliArguments] = scripts.start.split(' ');
    expect([node, main]).toEqual(['node', '../../src/cli/main.ts']);
    const database = await createTestDatabase();
    const env = { DATABASE_URL: database.url, PORT: '0', HOST: '127.0.0.1', LOG_LEVEL: 'warn' };
    const program = startCli(cliArguments, { cwd, env });
    const url = await program.url();
    const [, file] = /```jsonl\n(.*?)```/s.exec(readme) ?? [];
    if (file !== undefined) await importFile(name, file, { cwd, env });
    await until(async () => allActive(await ask(url, '{ _meta { projections { state lag } } }')));
    for (const [operation, shown] of operationsOf(readme)) {
      const answer = await ask(url, operation);
      // The whole response is shown if it has errors, else only the data.
      if (shown.errors === undefined) expect(answer.errors).toBeUndefined();
      expect(shown.errors === undefined ? answer.data : answer).toEqual(withAnything(shown));
    }
    expect((await program.end('SIGTERM')).code).toBe(0);
    await database.drop();
  });
});

/** The lines that the README shows. */
async function importFile(name: string, lines: string, options: CliOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'refold-readme-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'lines.jsonl'), lines);
  const { code, stderr } = await runCli(['import', name, join(folder, 'lines.jsonl'), '--config', 'app.ts'], options);
  expect(code, stderr).toBe(0);
}
