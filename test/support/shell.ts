import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { decisive, fromBundle } from './cli.ts';
import { until } from './until.ts';

/** A running shell, as in a user's terminal. Commands ending in `&` stay running until they are killed, or `close`. */
export class Shell {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #printed = '';

  constructor({ cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }) {
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !decisive.includes(name)));
    this.#child = spawn('bash', ['--norc'], {
      cwd,
      env: { ...inherited, ...fromBundle(), LOG_FORMAT: 'text', ...env }, // as in a terminal
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true, // a process group of its own
    });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#printed += text;
    });
    // As in a terminal: errors beside the output, and aliases. What it has started ends with it, even if this process is killed.
    this.#child.stdin.write("exec 2>&1\nshopt -s expand_aliases\ntrap 'kill -9 0' EXIT\n");
  }

  /** Runs lines until the prompt would return. */
  async run(lines: string): Promise<ShellOutput> {
    const from = this.#printed.length;
    this.#child.stdin.write(`{\n${lines}\n} < /dev/null\nprintf '${mark}%s\\n' $?\n`);
    const text = () => withoutLogs(this.#printed.slice(from));
    const code = await until(() => {
      if (this.#child.exitCode !== null) throw new Error(`The shell has ended: ${text()}`);
      return marked.exec(this.#printed.slice(from))?.[1];
    });
    return { text, code: Number(code) };
  }

  /** What the processes have logged so far: the messages. */
  logged(): readonly string[] {
    return [...this.#printed.matchAll(/^\[[\d:]{8}\] [A-Z]+: (.*)$/gm)].map(([, message = '']) => message);
  }

  /** Kills everything that still runs in it. */
  async close(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    await closed;
  }
}

export interface ShellOutput {
  /** What was printed so far, without log lines. Processes in the background go on printing. */
  text(): string;
  /** The exit code of the last line. */
  readonly code: number;
}

const mark = '::: exit code ';
const marked = /^::: exit code (\d+)$/m;

// A message of the logger with the fields below it, and what a shell says of a job that was killed.
const besideOutput = /^(\[[\d:]{8}\] [A-Z]+: .*\n( {4}.*\n)*|bash: line \d+: +\d+ Killed .*\n)/gm;

function withoutLogs(text: string): string {
  return `${text}\n`.replaceAll(besideOutput, '').replace(marked, '').trim();
}
