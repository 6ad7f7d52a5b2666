import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ClockMessage } from './clock.ts';
import { blockedLine } from './slowness.ts';

/** Options of a process of the application. */
export interface ProcessOptions {
  readonly url: string;
  /** Of the read store in the other server. */
  readonly storeUrl: string;
  readonly ownership: 'advisory' | 'lease';
  readonly leaseSeconds: number;
  /** The versions that it declares of the versioned read models. */
  readonly lowest: number;
  readonly highest: number;
  /** Where a gateway listens. */
  readonly port?: number;
}

/** One life of a worker or a gateway. */
export interface AppProcess {
  /** Its place and its number there, such as `worker 1.4`: also the name of its sessions in the server. */
  readonly name: string;
  /** Its name in the registry. */
  readonly owner: string;
  /** The versions that it declares of the versioned read models. */
  readonly lowest: number;
  readonly highest: number;
  /** The last lines of its output: warnings and worse. */
  readonly said: readonly string[];
  /** How it ended, if the run did not end it. */
  readonly death: string | undefined;
  readonly stopped: boolean;
  /** When an event last began to block it, in milliseconds since 1970. */
  readonly blockedAt: number | undefined;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Sets its clock: so many milliseconds before or after the real time. */
  moveClock(offsetMs: number): void;
  /** Resolves when the process has ended: with a problem, if it did not end as expected. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<string | undefined>;
}

/** The most memory for JavaScript's objects that a process has. */
export const heapMegabytes = 256;

/** Longer than a stop may take by itself (the command line allows 15 seconds). */
const longestStopMs = 20_000;

// However the run ends, no process may stay: a frozen process would not notice.
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

// Processes start all the time; with it, a start takes half of the processor's time.
const compileCache = join(tmpdir(), 'refold-compile-cache');

/** Resolves when it runs. @throws if it ends before that */
export async function startProcess(
  program: 'worker.ts' | 'gateway.ts',
  name: string,
  options: ProcessOptions,
): Promise<AppProcess> {
  const named = (text: string) => {
    const url = new URL(text);
    url.searchParams.set('application_name', name);
    return url.href;
  };
  const { url, storeUrl } = options;
  const file = (name: string) => join(import.meta.dirname, name);
  const child = spawn(
    process.execPath,
    [
      ...[`--max-old-space-size=${heapMegabytes}`, '--import', file('clock.ts'), file(program)],
      JSON.stringify({ ...options, url: named(url), storeUrl: named(storeUrl) }),
    ],
    { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: { ...process.env, NODE_COMPILE_CACHE: compileCache } },
  );
  const said: string[] = [];
  const started = Promise.withResolvers<void>();
  const hear = (stream: NodeJS.ReadableStream | null) => {
    if (!stream) return;
    createInterface(stream).on('line', (line) => {
      if (line === 'started') started.resolve();
      else if (line === blockedLine) blockedAt = Date.now();
      else said.push(line);
      if (said.length > 200) said.shift();
    });
  };
  hear(child.stdout);
  hear(child.stderr);
  running.add(child);
  let asked = false;
  let stopped = false;
  let blockedAt: number | undefined;
  let death: string | undefined;
  child.once('exit', (code, signal) => {
    running.delete(child);
    if (!asked) death = `ended by itself with ${signal ?? code}`;
    started.reject(new Error(`${name} ended with ${signal ?? code} before it ran:\n${said.join('\n')}`));
  });
  child.on('error', () => {}); // a message to a process that has just ended
  await started.promise;
  const signal: AppProcess['signal'] = (name) => {
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
    get blockedAt() {
      return blockedAt;
    },
    signal,
    moveClock: (clockOffsetMs) => {
      if (child.connected) child.send({ clockOffsetMs } satisfies ClockMessage);
    },
    async end(last) {
      if (death !== undefined) return death;
      asked = true;
      // A process stopped by SIGSTOP does not handle SIGTERM.
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
