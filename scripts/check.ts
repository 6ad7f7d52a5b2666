/** `npm run check`: everything that CI asks of the project, one step after the other, all of them even if one fails. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

interface Step {
  readonly script: string;
  /** A step whose subject does not exist yet is named and left out. */
  readonly subject?: string;
}

const steps: readonly Step[] = [
  { script: 'typecheck' },
  { script: 'lint' },
  { script: 'codegen:check', subject: 'codegen.ts' },
  { script: 'migrations:check', subject: 'scripts/dump-schema.ts' },
  { script: 'test' },
  { script: 'package:check' },
];

const failed = steps.filter((step) => !passes(step)).map((step) => step.script);
if (failed.length > 0) {
  console.error(`\ncheck: failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}

function passes({ script, subject }: Step): boolean {
  if (subject !== undefined && !existsSync(subject)) {
    console.log(`\n--- ${script}: left out, there is no ${subject} yet`);
    return true;
  }
  console.log(`\n--- ${script}`);
  const start = performance.now();
  const { status } = spawnSync('npm', ['run', '--silent', script], { stdio: 'inherit' });
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(`--- ${script}: ${status === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  return status === 0;
}
