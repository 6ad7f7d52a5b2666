/** Prints the failures of all CI runs and `N passed, N failed` over all of them; fails if a run did not end well. */
import { readRunResult, summary } from './run-result.ts';

const results = new Map(['check', 'tests', 'chaos', 'bench'].map((run) => [run, readRunResult(run)]));
console.log(`\n${summary(results).join('\n')}`);
process.exitCode = [...results.values()].every((run) => run?.success === true) ? 0 : 1;
