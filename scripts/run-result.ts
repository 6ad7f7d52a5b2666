/** What each run of CI (tests, checks, chaos, benchmarks) leaves in `.refold/ci/` for the totals at the end. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

export interface RunResult {
  readonly passed: number;
  readonly failed: number;
  /** Whether the run ended well. A run may fail without a failed test. */
  readonly success: boolean;
  readonly problems: readonly Problem[];
}

/** A failure in a run. */
export interface Problem {
  /** Its subject: a test, a promise, a step. */
  readonly name: string;
  /** The details, as text of any length. */
  readonly message: string;
}

/** Longer messages are cut in CI's last lines: a dozen of them must fit in the part of the output that is kept. */
const shownLines = 10;
const shownColumns = 240;
const shownProblems = 30;

const directory = '.refold/ci';

export function writeRunResult(run: string, result: RunResult): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}/${run}.json`, JSON.stringify(result));
}

/** Undefined if the run did not end. */
export function readRunResult(run: string): RunResult | undefined {
  try {
    return JSON.parse(readFileSync(`${directory}/${run}.json`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The last lines of CI: each problem with the start of its message, then `N passed, N failed`. */
export function summary(results: ReadonlyMap<string, RunResult | undefined>): readonly string[] {
  const lines: string[] = [];
  for (const [run, result] of results) {
    if (result === undefined) lines.push(`FAILED ${run}: it did not end`);
    else if (!result.success && result.problems.length === 0) lines.push(`FAILED ${run}: see its output`);
    for (const { name, message } of result?.problems.slice(0, shownProblems) ?? []) {
      lines.push(`FAILED ${run}: ${name}`, ...beginning(message));
    }
    const more = (result?.problems.length ?? 0) - shownProblems;
    if (more > 0) lines.push(`FAILED ${run}: and ${more} more`);
  }
  const runs = [...results.values()];
  const passed = runs.reduce((sum, run) => sum + (run?.passed ?? 0), 0);
  // A missing run, and a run that failed without a problem, count as one failure.
  const failed = runs.reduce((sum, run) => sum + Math.max(run?.failed ?? 0, run?.success ? 0 : 1), 0);
  return [...lines, `${passed} passed, ${failed} failed`];
}

function beginning(message: string): readonly string[] {
  const lines = message.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(0, shownLines).map((line) => `    ${line.slice(0, shownColumns)}`);
}
