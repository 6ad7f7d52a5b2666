/** `npm run bench`: Refold beside its limits and its peers, in one run. See docs/performance.md. */
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Problem, writeRunResult } from '../scripts/run-result.ts';
import { type CartLog, createCartLog } from './cart-log.ts';
import { chooseScenarios } from './choose-scenarios.ts';
import { growthPlot } from './growth-plot.ts';
import { emmettIsInstalled } from './peers/emmett.ts';
import { isInstalled } from './peers/installed.ts';
import { ratioPlot } from './ratio-plot.ts';
import { markdownTable, reportLine, screenTable } from './report.ts';
import type { Result } from './scenario.ts';
import { scenarios } from './scenarios/all.ts';
import { type BenchServer, serverSettings, startBenchServer } from './server.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    json: { type: 'string' },
  },
});
const { quick, only, json } = options;
const chosen = chooseScenarios(scenarios, { quick, only });
if (chosen.length === 0) {
  console.error(
    `No scenario is called '${only.join("' or '")}'. There are: ${scenarios.map(({ name }) => name).join(', ')}.`,
  );
  process.exit(1);
}

let measuring = 'the server';
const server = await startBenchServer();
try {
  await write(server, await measured(server));
  leaveResult([]);
} catch (error) {
  leaveResult([{ name: measuring, message: error instanceof Error ? String(error.stack) : String(error) }]);
  throw error;
} finally {
  await server.stop();
}

/** In CI: what was measured and right, and what was not. No figure is judged. */
function leaveResult(problems: readonly Problem[]): void {
  if (process.env.CI === undefined) return;
  const success = problems.length === 0;
  writeRunResult('bench', { passed: success ? chosen.length : 0, failed: problems.length, success, problems });
}

async function measured(on: BenchServer): Promise<Result[]> {
  if (!emmettIsInstalled() || !isInstalled('postgraphile'))
    console.log('The peers are not installed, so their columns are empty; `npm run bench:install` installs them.');
  const results: Result[] = [];
  let log: Promise<CartLog> | undefined;
  const longLog = () => {
    log ??= quick ? createCartLog(on, 'bench_log', 100_000, 5_000) : createCartLog(on, 'bench_log', 1_000_000, 50_000);
    return log;
  };
  for (const { name, run } of chosen) {
    measuring = name;
    const start = performance.now();
    results.push(...(await run({ server: on, quick, rounds: quick ? 2 : 5, longLog })));
    console.log(`${name}: measured and right, ${((performance.now() - start) / 1000).toFixed(1)} s`);
  }
  return results;
}

async function write(on: BenchServer, results: readonly Result[]): Promise<void> {
  const conditions = [
    `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.versions.node}, PostgreSQL ${on.version}`,
    quick ? '`--quick`' : 'full',
    Object.entries(serverSettings)
      .map(([name, value]) => `${name} = ${value}`)
      .join(', '),
  ].join('; ');
  const lines = JSON.stringify(results.map(reportLine), null, 2);
  console.log(`\n${conditions}\nMedians of the rounds (lowest–highest).\n\n${screenTable(results)}`);
  const folder = join(import.meta.dirname, 'results');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'latest.md'), `${conditions}\n\n${markdownTable(results)}\n`);
  await writeFile(join(folder, 'latest.json'), `${lines}\n`);
  await writeFile(join(folder, 'latest.svg'), ratioPlot(results));
  const growth = growthPlot(results);
  if (growth !== undefined) await writeFile(join(folder, 'growth.svg'), growth);
  if (json !== undefined) await writeFile(json, `${lines}\n`);
}
