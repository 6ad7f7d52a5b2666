/**
 * `npm run check`: all checks of CI, one after another, all of them even if one fails. With `--system`, the
 * tests of `npm run test:system` run as well.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type Problem, writeRunResult } from './run-result.ts';

interface Step {
  readonly script: string;
  /** A step is named and left out if its subject does not exist yet. */
  readonly subject?: string;
}

const tests = process.argv.includes('--system') ? 'test:both' : 'test';
const steps: readonly Step[] = [
  { script: 'typecheck' },
  { script: 'lint' },
  { script: 'codegen:check', subject: 'codegen.ts' },
  { script: 'migrations:check', subject: 'scripts/dump-schema.ts' },
  { script: 'house:check' },
  { script: tests },
  { script: 'package:check' },
];

const problems = steps.flatMap((step) => problemsOf(step));
if (process.env.CI !== undefined) {
  // The test run itself reports which tests failed.
  const told = problems.filter(({ name }) => name !== tests);
  writeRunResult('check', { passed: 0, failed: told.length, success: told.length === 0, problems: told });
}
if (problems.length > 0) {
  console.error(`\ncheck: failed: ${problems.map(({ name }) => name).join(', ')}`);
  process.exitCode = 1;
}

/** Runs a step. Empty if it passes, else its output. */
function problemsOf({ script, subject }: Step): readonly Problem[] {
  if (subject !== undefined && !existsSync(subject)) {
    console.log(`\n--- ${script}: left out, there is no ${subject} yet`);
    return [];
  }
  console.log(`\n--- ${script}`);
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], {
    // The tests take minutes, so their output is shown while they run.
    stdio: script === tests ? 'inherit' : ['inherit', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  process.stdout.write(stdout ?? '');
  process.stderr.write(stderr ?? '');
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(`--- ${script}: ${status === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  if (status === 0) return [];
  const said = (stderr ?? '').replaceAll(/^npm warn.*\n/gm, '').trim();
  return [{ name: script, message: said === '' ? (stdout ?? '') : said }];
}
