import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, inject, onTestFinished } from 'vitest';
import { until } from './until.ts';

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `refold …` in its own process. If it still runs when the test is over, it is killed. */
export interface CliProcess {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly printed: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<CliResult>;
  /** Waits until it has printed this; returns the match. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  /** The address of its gateway, once it listens. */
  url(): Promise<string>;
  end(signal: NodeJS.Signals): Promise<CliResult>;
}

const main = join(import.meta.dirname, '../../src/cli/main.ts');
// Environment variables that would configure the command if the test did not override them.
export const decisive = [
  'DATABASE_URL',
  'PORT',
  'HOST',
  'NODE_ENV',
  'LOG_LEVEL',
  'LOG_FORMAT',
  'NO_COLOR',
  'FORCE_COLOR',
];

export function startCli(cliArguments: readonly string[], { env = {}, cwd }: CliOptions = {}): CliProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !decisive.includes(name)));
  const child = spawn(process.execPath, [main, ...cliArguments], {
    env: { ...inherited, ...fromBundle(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      printed[stream] += text;
    });
  }
  let closed = false;
  const ended = once(child, 'close').then(([code, signal]): CliResult => {
    closed = true;
    return { code, signal, ...printed };
  });
  const running = () => child.exitCode === null && child.signalCode === null;
  onTestFinished(async () => {
    if (running()) child.kill('SIGKILL');
    await ended;
  });

  const prints = (pattern: RegExp) =>
    until(() => {
      const match = pattern.exec(printed.stdout);
      // Only 'close' comes after all output was read: 'exit' may come earlier.
      if (!match) expect(!closed, `ended before it printed ${pattern}:\n${printed.stdout}${printed.stderr}`).toBe(true);
      return match;
    });
  return {
    child,
    printed,
    ended,
    prints,
    url: async () => (await prints(/GraphQL +(http:\S+)\/graphql/))[1] as string, // part of the match
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Environment of programs that load the sources from the bundle of the run, which takes a fraction of the time. */
export function fromBundle(): Readonly<Record<string, string>> {
  const hook = inject('bundledSources');
  return hook === undefined ? {} : { NODE_OPTIONS: `--import=${hook}` };
}

/** Runs `refold …` to its end. */
export function runCli(cliArguments: readonly string[], options?: CliOptions): Promise<CliResult> {
  return startCli(cliArguments, options).ended;
}
