/** `npm run bench`: compares Refold with its limits and its peers, in one run. See docs/performance.md and bench/NOTES.md. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Problem, writeRunResult } from '../scripts/run-result.ts';
import { today } from '../test/support/turns.ts';
import { type CartLog, createCartLog } from './cart-log.ts';
import { chooseScenarios } from './choose-scenarios.ts';
import { emmettIsInstalled } from './peers/emmett.ts';
import { isInstalled } from './peers/installed.ts';
import { createRunReport, runScenarios } from './run-report.ts';
import type { BenchContext } from './scenario.ts';
import { scenarios } from './scenarios/all.ts';
import { type BenchServer, serverSettings, startBenchServer } from './server.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    'in-turns': { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    json: { type: 'string' },
  },
});
const { quick, only, json } = options;
const rounds = Number(options.rounds ?? (quick ? 2 : 5));
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error(`--rounds is the number of rounds, 1 or more; found '${options.rounds}'.`);
  process.exit(1);
}
const day = options['in-turns'] && process.env.EFFORT !== 'whole' ? today() : undefined;
const chosen = chooseScenarios(scenarios, { quick, only, day });
if (chosen.length === 0) {
  console.error(
    `No scenario is called '${only.join("' or '")}'. There are: ${scenarios.map(({ name }) => name).join(', ')}.`,
  );
  process.exit(1);
}

if (!emmettIsInstalled() || !isInstalled('postgraphile'))
  console.log('The peers are not installed, so their columns are empty; `npm run bench:install` installs them.');

let measuring = 'the server';
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => stopping.abort(new Error(`The run was stopped by ${signal}.`)));

const server = await startBenchServer();
const report = createRunReport({
  folder: join(import.meta.dirname, 'results'),
  json,
  conditions: conditionsOf(server),
  chosen: chosen.length,
  print: (text) => console.log(text),
});
try {
  await runScenarios(chosen, {
    context: contextOf(server),
    report,
    signal: stopping.signal,
    onStart: (name) => {
      measuring = name;
    },
  });
  leaveResult([]);
} catch (error) {
  leaveResult([{ name: measuring, message: error instanceof Error ? String(error.stack) : String(error) }]);
  if (!stopping.signal.aborted) throw error;
  console.error(`${measuring}: ${stopping.signal.reason.message}`);
  // A run that is stopped ends the server while something is measured: ignore the resulting errors.
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
} finally {
  report.printAll();
  await server.stop();
}
if (stopping.signal.aborted) process.exit(130);

/** In CI: which scenarios have right results, and which do not. Figures are not judged. */
function leaveResult(problems: readonly Problem[]): void {
  if (process.env.CI === undefined) return;
  const success = problems.length === 0;
  writeRunResult('bench', { passed: success ? chosen.length : 0, failed: problems.length, success, problems });
}

function contextOf(on: BenchServer): BenchContext {
  let log: Promise<CartLog> | undefined;
  const longLog = () => {
    log ??= quick ? createCartLog(on, 'bench_log', 100_000, 5_000) : createCartLog(on, 'bench_log', 1_000_000, 50_000);
    return log;
  };
  return { server: on, quick, rounds, longLog };
}

function conditionsOf(on: BenchServer): string {
  return [
    `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.versions.node}, PostgreSQL ${on.version}`,
    quick ? '`--quick`' : 'full',
    ...(options.rounds === undefined ? [] : [`--rounds ${rounds}`]),
    Object.entries(serverSettings)
      .map(([name, value]) => `${name} = ${value}`)
      .join(', '),
  ].join('; ');
}
