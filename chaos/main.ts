/** `npm run chaos -- --seed N --minutes M`: an application under faults, and whether it kept its promises. See docs/chaos.md. */
import { inspect, parseArgs } from 'node:util';
import { writeRunResult } from '../scripts/run-result.ts';
import { describeAction, plan } from './plan.ts';
import { run } from './run.ts';

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    minutes: { type: 'string', default: '2' },
    ownership: { type: 'string', default: 'lease' },
    rate: { type: 'string', default: '150' },
    appends: { type: 'string', default: '10000' },
    plan: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const seed = options.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber('seed', options.seed);
const minutes = Number(options.minutes);
if (!(minutes > 0)) fail(`--minutes is a number above 0, found '${options.minutes}'.`);
const { ownership } = options;
if (ownership !== 'lease' && ownership !== 'advisory')
  fail(`--ownership is 'lease' or 'advisory', found '${ownership}'.`);

if (options.plan) {
  const steps = plan(seed);
  for (let n = 0; n < minutes * 60; n++) console.log(describeAction(steps.next().value.action));
} else {
  const running = run({
    seed,
    minutes,
    ownership,
    leaseSeconds: 2,
    appendsPerSecond: wholeNumber('rate', options.rate),
    leastAppends: wholeNumber('appends', options.appends),
    keepFiles: options.keep,
    say: (line) => console.log(line),
  });
  const result = await running.catch((error: unknown) => {
    console.error(error);
    return { passed: 0, failed: 1, success: false, problems: [{ name: 'the run itself', message: inspect(error) }] };
  });
  if (process.env.CI !== undefined) writeRunResult('chaos', result);
  process.exitCode = result.success ? 0 : 1;
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) fail(`--${name} is a whole number, found '${text}'.`);
  return value;
}

function fail(problem: string): never {
  console.error(problem);
  process.exit(1);
}
