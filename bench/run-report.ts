import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { growthPlot } from './growth-plot.ts';
import { ratioPlot } from './ratio-plot.ts';
import { markdownTable, reportLine, screenTable } from './report.ts';
import type { BenchContext, Result, Scenario } from './scenario.ts';

export interface RunReportOptions {
  /** The folder of `latest.md` and the other files. */
  readonly folder: string;
  /** An additional file for the figures as JSON. */
  readonly json?: string | undefined;
  /** The machine, the versions and the settings. */
  readonly conditions: string;
  /** How many scenarios the run will measure. */
  readonly chosen: number;
  readonly print: (text: string) => void;
}

/** Prints and stores the figures of each scenario at once: a run that ends early loses none of them. */
export interface RunReport {
  add(scenario: string, results: readonly Result[], seconds: number): Promise<void>;
  /** Prints all figures as one table. */
  printAll(): void;
}

export function createRunReport({ folder, json, conditions, chosen, print }: RunReportOptions): RunReport {
  const results: Result[] = [];
  let measured = 0;

  const heading = () => (measured === chosen ? conditions : `${conditions}; ${measured} of ${chosen} scenarios`);

  return {
    async add(scenario, ofScenario, seconds) {
      measured++;
      results.push(...ofScenario);
      print(`\n${scenario}: measured and right, ${seconds.toFixed(1)} s\n${screenTable(ofScenario)}`);
      const lines = `${JSON.stringify(results.map(reportLine), null, 2)}\n`;
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'latest.md'), `${heading()}\n\n${markdownTable(results)}\n`);
      await writeFile(join(folder, 'latest.json'), lines);
      await writeFile(join(folder, 'latest.svg'), ratioPlot(results));
      const growth = growthPlot(results);
      if (growth !== undefined) await writeFile(join(folder, 'growth.svg'), growth);
      if (json !== undefined) await writeFile(json, lines);
    },
    printAll() {
      if (measured > 0) print(`\n${heading()}\nMedians of the rounds (lowest–highest).\n\n${screenTable(results)}`);
    },
  };
}

/** Measures one scenario after another. Rejects at once with the signal's reason, even during a measurement. */
export async function runScenarios(
  scenarios: readonly Scenario[],
  options: {
    readonly context: BenchContext;
    readonly report: RunReport;
    readonly signal: AbortSignal;
    readonly onStart: (name: string) => void;
  },
): Promise<void> {
  const { context, report, signal, onStart } = options;
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  stopped.catch(() => {}); // also if nothing is being measured
  for (const { name, run } of scenarios) {
    signal.throwIfAborted();
    onStart(name);
    const start = performance.now();
    const results = await Promise.race([run(context), stopped]);
    await report.add(name, results, (performance.now() - start) / 1000);
  }
}
