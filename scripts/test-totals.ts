/** Prints `N passed, N failed` over all the test runs of CI, and fails when one of them did not end well. */
import { readFileSync } from 'node:fs';

interface RunResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly success: boolean;
}

const runs = ['suite', 'system'].map((name) => readRun(`.refold/ci/${name}.json`));
const sum = (count: (run: RunResult) => number) => runs.reduce((total, run) => total + (run ? count(run) : 0), 0);
console.log(`${sum((run) => run.numPassedTests)} passed, ${sum((run) => run.numFailedTests)} failed`);
process.exitCode = runs.every((run) => run?.success === true) ? 0 : 1;

/** Nothing when the run did not come to its end. */
function readRun(file: string): RunResult | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
