/** What each run of CI (its tests, its checks, its chaos, its benchmarks) leaves in `.refold/ci/` for the totals at the end. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

export interface RunResult {
  readonly passed: number;
  readonly failed: number;
  /** Whether the run ended well: a run may fail without a failed test. */
  readonly success: boolean;
  readonly problems: readonly Problem[];
}

/** Something that is not as it should be. */
export interface Problem {
  /** What it is about: a test, a promise, a step. */
  readonly name: string;
  /** What was found, as text of any length. */
  readonly message: string;
}

/** A message of CI's last lines is no longer than this, so that a dozen of them still fit in what is kept of its output. */
const shownLines = 10;
const shownColumns = 240;
const shownProblems = 30;

const directory = '.refold/ci';

export function writeRunResult(run: string, result: RunResult): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}/${run}.json`, JSON.stringify(result));
}

/** Nothing when the run did not come to its end. */
export function readRunResult(run: string): RunResult | undefined {
  try {
    return JSON.parse(readFileSync(`${directory}/${run}.json`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The last lines of CI: each problem with the beginning of its message, then `N passed, N failed`. */
export function summary(results: ReadonlyMap<string, RunResult | undefined>): readonly string[] {
  const lines: string[] = [];
  for (const [run, result] of results) {
    if (result === undefined) lines.push(`FAILED ${run}: it did not come to its end`);
    else if (!result.success && result.problems.length === 0) lines.push(`FAILED ${run}: see its output`);
    for (const { name, message } of result?.problems.slice(0, shownProblems) ?? []) {
      lines.push(`FAILED ${run}: ${name}`, ...beginning(message));
    }
    const more = (result?.problems.length ?? 0) - shownProblems;
    if (more > 0) lines.push(`FAILED ${run}: and ${more} more`);
  }
  const runs = [...results.values()];
  const passed = runs.reduce((sum, run) => sum + (run?.passed ?? 0), 0);
  // A run that is not there, or that failed without saying at what, is one that failed.
  const failed = runs.reduce((sum, run) => sum + Math.max(run?.failed ?? 0, run?.success ? 0 : 1), 0);
  return [...lines, `${passed} passed, ${failed} failed`];
}

function beginning(message: string): readonly string[] {
  const lines = message.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(0, shownLines).map((line) => `    ${line.slice(0, shownColumns)}`);
}
