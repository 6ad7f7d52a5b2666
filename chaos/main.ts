/** `npm run chaos -- --seed N --minutes M`: runs an application under faults and checks its promises. See docs/chaos.md. */
import { inspect, parseArgs } from 'node:util';
import { writeRunResult } from '../scripts/run-result.ts';
import { judges } from './judges/all.ts';
import { type ActionKind, actionNames, describeAction, plan } from './plan.ts';
import { type RunOptions, run } from './run.ts';

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    minutes: { type: 'string', default: '2' },
    hours: { type: 'string' },
    without: { type: 'string', default: '' },
    ownership: { type: 'string', default: 'lease' },
    rate: { type: 'string', default: '150' },
    appends: { type: 'string', default: '10000' },
    plan: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const seed = options.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber('seed', options.seed);
const minutes = options.hours === undefined ? Number(options.minutes) : Number(options.hours) * 60;
if (!(minutes > 0)) fail(`--minutes and --hours are numbers above 0, found '${options.hours ?? options.minutes}'.`);
const without = leftOut(options.without);
const { ownership } = options;
if (ownership !== 'lease' && ownership !== 'advisory')
  fail(`--ownership is 'lease' or 'advisory', found '${ownership}'.`);

// Ends the run in order on a signal: processes end by themselves, a mounted disk does not.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

if (options.plan) {
  const steps = plan(seed, without.actions);
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
    without,
    say: (line) => console.log(line),
  });
  const result = await running.catch((error: unknown) => {
    console.error(error);
    return { passed: 0, failed: 1, success: false, problems: [{ name: 'the run itself', message: inspect(error) }] };
  });
  if (process.env.CI !== undefined) writeRunResult('chaos', result);
  process.exit(result.success ? 0 : 1); // even if a client library still waits for something
}

/** The names of actions and judges, separated by commas. */
function leftOut(names: string): RunOptions['without'] {
  const actions = new Set<ActionKind>();
  const left = new Set<string>();
  for (const name of names.split(',').filter((part) => part !== '')) {
    const action = actionNames.get(name);
    if (action) actions.add(action);
    else if (judges.some((judge) => judge.name === name)) left.add(name);
    else
      fail(
        `--without has '${name}'; it takes ${[...actionNames.keys(), ...judges.map((judge) => judge.name)].join(', ')}.`,
      );
  }
  return { actions, judges: left };
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
