/**
 * `npm run check`: all checks of CI, all of them even if one fails. With `--system`, the tests of `npm run test:system` run as well.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { type Problem, writeRunResult } from './run-result.ts';

interface Step {
  readonly script: string;
  /** A step is named and left out if its subject does not exist yet. */
  readonly subject?: string;
}

const withSystem = process.argv.includes('--system');
const tests = withSystem ? ['test:all'] : ['test', 'test:programs'];
const checks: readonly Step[] = [
  { script: 'typecheck' },
  { script: 'lint' },
  { script: 'codegen:check', subject: 'codegen.ts' },
  { script: 'migrations:check', subject: 'scripts/dump-schema.ts' },
  { script: 'house:check' },
  // The tests of the system build the site themselves, and look at every page.
  ...(withSystem ? [] : [{ script: 'docs:build' }]),
];

// The package's check mostly waits for the registry and the disk, and many tests wait for leases and time limits. So they share the machine.
const found = await Promise.all([
  problemsOfAll(checks),
  problemsOf({ script: 'package:check' }),
  problemsOfAll(tests.map((script) => ({ script }))),
]);
const problems = found.flat();
if (process.env.CI !== undefined) {
  // The test run itself reports which tests failed.
  const told = problems.filter(({ name }) => !tests.includes(name));
  writeRunResult('check', { passed: 0, failed: told.length, success: told.length === 0, problems: told });
}
if (problems.length > 0) {
  console.error(`\ncheck: failed: ${problems.map(({ name }) => name).join(', ')}`);
  process.exitCode = 1;
}

async function problemsOfAll(steps: readonly Step[]): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const step of steps) problems.push(...(await problemsOf(step)));
  return problems;
}

/** Runs a step. Empty if it passes, else its output. */
async function problemsOf({ script, subject }: Step): Promise<readonly Problem[]> {
  if (subject !== undefined && !existsSync(subject)) {
    console.log(`\n--- ${script}: left out, there is no ${subject} yet`);
    return [];
  }
  const start = performance.now();
  // The tests take minutes, so their output is shown while they run.
  const shown = tests.includes(script);
  if (shown) console.log(`\n--- ${script}`);
  const child = spawn('npm', ['run', '--silent', script], {
    stdio: ['inherit', shown ? 'inherit' : 'pipe', shown ? 'inherit' : 'pipe'],
  });
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'close'),
    child.stdout ? text(child.stdout) : '',
    child.stderr ? text(child.stderr) : '',
  ]);
  const seconds = Math.round((performance.now() - start) / 1000);
  if (!shown) console.log(`\n--- ${script}\n${stdout}${stderr}`);
  console.log(`--- ${script}: ${code === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  if (code === 0) return [];
  const said = stderr.replaceAll(/^npm warn.*\n/gm, '').trim();
  return [{ name: script, message: said === '' ? stdout : said }];
}
