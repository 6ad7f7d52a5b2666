/** `npm run soak -- --minutes N`: a deployed application under clients for a long time. See docs/soak.md. */
import { parseArgs } from 'node:util';
import { reportBounds } from './report.ts';
import { run } from './run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '40' },
    through: { type: 'string', default: 'both' },
    seed: { type: 'string' },
    bounds: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const { through } = values;
if (through !== 'direct' && through !== 'pooler' && through !== 'both')
  fail(`--through is 'direct', 'pooler' or 'both', found '${through}'.`);
const say = (line: string) => console.log(line);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

if (values.bounds) reportBounds(say);
else {
  const problems = await run({
    minutes: above0('minutes', values.minutes),
    rate: above0('rate', values.rate),
    through,
    seed: values.seed === undefined ? Math.floor(Math.random() * 1e6) : above0('seed', values.seed),
    keepFiles: values.keep,
    say,
  });
  say(problems.length === 0 ? '\nno problems' : `\nFAILED: ${problems.length} problems`);
  for (const problem of problems) say(`  ${problem}`);
  process.exit(problems.length === 0 ? 0 : 1); // even if a client library still waits for something
}

function above0(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) fail(`--${name} is a number above 0, found '${text}'.`);
  return value;
}

function fail(problem: string): never {
  console.error(problem);
  process.exit(1);
}
