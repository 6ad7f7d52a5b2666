import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRunReport, runScenarios } from '../../bench/run-report.ts';
import type { BenchContext, Result, Scenario } from '../../bench/scenario.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refold-bench-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const context: BenchContext = {
  server: {
    version: '',
    createDatabase: async () => '',
    settle: async () => {},
    processor: () => 0,
    stop: async () => {},
  },
  quick: true,
  rounds: 1,
  longLog: () => Promise.reject(new Error('not asked for')),
};

function measuring(name: string, figure: number): Scenario {
  const result: Result = { scenario: name, unit: 'events/s', better: 'more', refold: [figure], target: {} };
  return { name, run: async () => [result] };
}

async function runOf(scenarios: readonly Scenario[], stop?: (controller: AbortController) => void) {
  const printed: string[] = [];
  const json = join(folder, 'figures.json');
  const print = (text: string) => printed.push(text);
  const report = createRunReport({ folder, json, conditions: 'here', chosen: scenarios.length, print });
  const stopping = new AbortController();
  const onStart = () => stop?.(stopping);
  const error = await runScenarios(scenarios, { context, report, signal: stopping.signal, onStart }).then(
    () => undefined,
    (reason: Error) => reason.message,
  );
  const kept: readonly { scenario: string; refold: number }[] = JSON.parse(await readFile(json, 'utf8'));
  return { error, printed, kept, table: await readFile(join(folder, 'latest.md'), 'utf8') };
}

test('the figures of a scenario are printed and kept when it is measured, even if the next one fails', async () => {
  const fails: Scenario = { name: 'second', run: () => Promise.reject(new Error('a wrong result')) };
  const { error, printed, kept, table } = await runOf([measuring('first', 42), fails]);
  expect(error).toBe('a wrong result');
  expect(printed).toEqual([expect.stringMatching(/first: measured and right, .*\n.*\nfirst +events\/s +42\.0/s)]);
  expect(kept).toMatchObject([{ scenario: 'first', refold: 42 }]);
  expect(table).toMatch(/^here; 1 of 2 scenarios\n/);
  expect(table).toContain('| first | events/s | 42.0');
});

test('a run that is stopped in the middle of a scenario ends at once, and keeps what it has measured', async () => {
  const endless: Scenario = { name: 'endless', run: () => new Promise(() => {}) };
  let started = 0;
  const { error, kept } = await runOf([measuring('first', 7), endless], (controller) => {
    if (++started === 2) controller.abort(new Error('stopped'));
  });
  expect(error).toBe('stopped');
  expect(kept).toMatchObject([{ scenario: 'first', refold: 7 }]);
});

test('the heading of a complete run does not mention the number of scenarios', async () => {
  const { error, table, kept } = await runOf([measuring('first', 1), measuring('second', 2)]);
  expect(error).toBeUndefined();
  expect(kept).toHaveLength(2);
  expect(table).toMatch(/^here\n/);
});
