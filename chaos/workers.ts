import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { WorkerOptions } from './worker.ts';

/** One life of a worker process. */
export interface Worker {
  /** Its place among the workers, and the how manieth process in it, such as `worker 1.4`: what its sessions are called in the server. */
  readonly name: string;
  /** Its name in the registry. */
  readonly owner: string;
  /** The versions of `balance` that it declares. */
  readonly lowest: number;
  readonly highest: number;
  /** The last that it has said: warnings and worse. */
  readonly said: readonly string[];
  /** How it ended without being told to, if it did. */
  readonly death: string | undefined;
  readonly stopped: boolean;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Comes back when the process has ended; what it ended with, where that was not as asked. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<string | undefined>;
}

/** Beyond what a stop may take by itself (the command line allows 15 seconds). */
const longestStopMs = 20_000;

/** Comes back when it runs. @throws where it ends before. */
export async function startWorker(name: string, options: WorkerOptions): Promise<Worker> {
  const url = new URL(options.url);
  url.searchParams.set('application_name', name);
  const program = join(import.meta.dirname, 'worker.ts');
  const child = spawn(process.execPath, [program, JSON.stringify({ ...options, url: url.href })], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: string[] = [];
  const started = Promise.withResolvers<void>();
  const hear = (line: string) => {
    if (line === 'started') started.resolve();
    else said.push(line);
    if (said.length > 200) said.shift();
  };
  createInterface(child.stdout).on('line', hear);
  createInterface(child.stderr).on('line', hear);
  let told = false;
  let stopped = false;
  let death: string | undefined;
  child.once('exit', (code, signal) => {
    if (!told) death = `ended by itself with ${signal ?? code}`;
    started.reject(new Error(`${name} ended with ${signal ?? code} before it ran:\n${said.join('\n')}`));
  });
  await started.promise;
  const signal: Worker['signal'] = (name) => {
    child.kill(name);
    stopped = name === 'SIGSTOP';
  };
  return {
    name,
    owner: `${hostname()}:${child.pid}`,
    lowest: options.lowest,
    highest: options.highest,
    said,
    get death() {
      return death;
    },
    get stopped() {
      return stopped;
    },
    signal,
    async end(last) {
      told = true;
      // A stopped process hears no SIGTERM.
      if (stopped && last === 'SIGTERM') signal('SIGCONT');
      return endProcess(child, last);
    },
  };
}

async function endProcess(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<string | undefined> {
  if (child.exitCode !== null || child.signalCode !== null) return undefined;
  const exited = once(child, 'exit');
  child.kill(signal);
  if (signal === 'SIGKILL') return void (await exited);
  const late = setTimeout(() => child.kill('SIGKILL'), longestStopMs);
  await exited;
  clearTimeout(late);
  if (child.signalCode === 'SIGKILL') return `was not gone ${longestStopMs / 1000} s after SIGTERM`;
  return child.exitCode === 0 ? undefined : `ended with ${child.exitCode} after SIGTERM`;
}
