import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { DatabaseOptions } from '../../src/config/database-options.ts';
import type { Placement } from '../../src/config/read-store-options.ts';
import type { RuntimeOptions } from '../../src/config/runtime-options.ts';
import { bundledProgram } from './bundled-program.ts';
import type { Release } from './releases.ts';
import type { UniqueRule } from './unique-domain.ts';

/** The options of a worker process, beside the sample domain. */
export interface WorkerProcessOptions {
  readonly url: string;
  /** Its name in the registry. */
  readonly owner: string;
  /** Also maintains {@link totalsBySql}. */
  readonly evolveSql?: boolean;
  /** Also maintains {@link inlineBalance}. */
  readonly inline?: boolean;
  readonly runtime?: RuntimeOptions;
  readonly database?: DatabaseOptions;
  /** The database of the read models, if it is another one than that of the log. */
  readonly storeUrl?: string;
  /** For a store in a Citus cluster. */
  readonly placement?: Placement;
  /** The number of projections that it maintains beside the sample domain's three. @default 0 */
  readonly tallies?: number;
  /** The number of partitions in which the sample domain's projections and {@link totalsBySql} are processed. @default 1 */
  readonly partitions?: number;
  /** For a program that kills itself when it folds this event of its projection. */
  readonly killAt?: number;
  /** For a program that writes: how many callers write at once. @default 4 */
  readonly writers?: number;
  /** For a program that writes: the highest version that it declares. @default 1 */
  readonly upTo?: number;
  /** For a program that claims unique values: its versions. */
  readonly rule?: UniqueRule;
  /** The release of the hotel. @default 3 */
  readonly hotel?: 1 | 2 | 3;
  /** For a program that serves clients, or maintains what they see. */
  readonly role?: 'gateway' | 'worker';
  /** For a program that runs a release. */
  readonly deployment?: Deployment;
}

/** A process of a release. */
export interface Deployment {
  readonly release: Release;
  /** Whether it maintains read tables and reactors; otherwise it only writes. */
  readonly maintain: boolean;
  /** Of what it draws at random. */
  readonly seed: number;
}

export interface WorkerProcess {
  readonly owner: string;
  /** What it has logged: warnings and errors. */
  readonly said: readonly {
    readonly msg: string;
    readonly err?: { readonly message: string; readonly code?: string };
  }[];
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Resolves when the process has ended, for any reason. */
  readonly ended: Promise<void>;
  /** Resolves when the process has ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

export interface WorkerProcesses {
  /** Resolves when the worker runs. */
  start(options: WorkerProcessOptions): Promise<WorkerProcess>;
  /** Kills the remaining workers. */
  killAll(): Promise<void>;
}

/**
 * Workers in their own processes, for tests that kill or stop them.
 *
 * @param program the program that they run, in `test/`; it receives its options as JSON, and prints `started`
 */
export function createWorkerProcesses(program = 'runtime/ownership/worker-process.ts'): WorkerProcesses {
  const running = new Set<WorkerProcess>();
  return {
    async start(options) {
      const bundle = await bundledProgram(join(import.meta.dirname, '..', program));
      const child = spawn(process.execPath, [bundle, JSON.stringify(options)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const said: WorkerProcess['said'][number][] = [];
      const lines = createInterface(child.stdout);
      const started = Promise.withResolvers<void>();
      lines.on('line', (line) => (line === 'started' ? started.resolve() : said.push(JSON.parse(line))));
      // Only 'close' comes after all output was read: 'exit' may come earlier.
      child.once('close', (code) => started.reject(new Error(`The worker ended with ${code} before it ran.`)));
      const worker: WorkerProcess = {
        owner: options.owner,
        said,
        ended: once(child, 'exit').then(() => {}),
        signal: (signal) => void child.kill(signal),
        async end(signal) {
          running.delete(worker);
          await end(child, signal);
        },
      };
      running.add(worker);
      await started.promise;
      return worker;
    },
    async killAll() {
      await Promise.all([...running].map((worker) => worker.end('SIGKILL')));
    },
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}
