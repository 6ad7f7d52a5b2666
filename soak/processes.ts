import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Deployment, environmentOf } from './deployment.ts';
import type { ProcessFigures } from './process-figures.ts';

export type Role = 'gateway' | 'worker';

/** `refold start` in a separate process, as in a deployment. */
export interface Deployed {
  /** Such as `gateway 1.3`: its place, and its number there. */
  readonly name: string;
  readonly role: Role;
  /** Where a gateway listens. */
  readonly url: string;
  /** The last figures that it reported. */
  readonly figures: ProcessFigures | undefined;
  /** SIGTERM was sent. */
  readonly stopping: boolean;
  /** How it ended, if it ended without a signal from the soak. */
  readonly death: string | undefined;
  /** Makes it collect all garbage. */
  collect(): void;
  /** Resolves when the process has ended; with a problem, if it did not end as expected. */
  stop(): Promise<string | undefined>;
  kill(): void;
}

export interface ProcessesOptions {
  readonly url: string;
  /** Called with each log line of level `warn` or above. */
  onLog(process: string, level: number, message: string): void;
}

const cli = join(import.meta.dirname, '../src/cli/main.ts');
const app = join(import.meta.dirname, 'app.ts');
const preload = join(import.meta.dirname, 'process-figures.ts');
/** Longer than the limit of `refold start` itself. */
const longestStopMs = 60_000;

// However the soak ends, no process may stay.
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Resolves when it runs. @throws if it ends before that */
export async function deploy(
  name: string,
  role: Role,
  deployment: Deployment,
  { url, onLog }: ProcessesOptions,
): Promise<Deployed> {
  const child = spawn(process.execPath, ['--import', preload, cli, 'start', '--role', role, '--config', app], {
    env: {
      ...process.env,
      ...environmentOf(deployment),
      DATABASE_URL: url,
      PORT: '0',
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  let figures: ProcessFigures | undefined;
  child.on('message', (message) => {
    figures = message as ProcessFigures; // all that it sends
  });
  const started = Promise.withResolvers<string>();
  const last: string[] = [];
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', hear); // piped
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', hear); // piped
  function hear(line: string): void {
    last.push(line);
    if (last.length > 30) last.shift();
    const logged = jsonIn(line);
    const text = logged?.msg ?? line;
    const listening = /GraphQL +(http:\S+)\/graphql/.exec(text)?.[1];
    if (listening) started.resolve(listening);
    else if (text.includes('maintains the read models')) started.resolve('');
    else if (logged) onLog(name, logged.level, logged.err ? `${logged.msg}: ${logged.err.message}` : logged.msg);
  }
  let stopping = false;
  let death: string | undefined;
  child.once('exit', (code, signal) => {
    running.delete(child);
    if (!stopping) death = `ended by itself with ${signal ?? code}:\n${last.join('\n')}`;
    started.reject(new Error(`${name} ended with ${signal ?? code} before it ran:\n${last.join('\n')}`));
  });
  const deployed: Deployed = {
    name,
    role,
    url: await started.promise,
    get figures() {
      return figures;
    },
    get stopping() {
      return stopping;
    },
    get death() {
      return death;
    },
    collect: () => void (child.connected && child.send('collect', () => {})),
    async stop() {
      stopping = true;
      const problem = await end(child);
      return problem && `${name} ${problem}:\n${last.join('\n')}`;
    },
    kill() {
      stopping = true;
      child.kill('SIGKILL');
    },
  };
  return deployed;
}

async function end(child: ChildProcess): Promise<string | undefined> {
  if (child.exitCode !== null || child.signalCode !== null) return undefined;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), longestStopMs);
  await exited;
  clearTimeout(late);
  if (child.signalCode === 'SIGKILL') return `was not gone ${longestStopMs / 1000} s after SIGTERM`;
  return child.exitCode === 0 ? undefined : `ended with ${child.exitCode} after SIGTERM`;
}

interface Logged {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly message: string };
}

function jsonIn(line: string): Logged | undefined {
  if (!line.startsWith('{"level"')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // a line that was cut off
  }
}
