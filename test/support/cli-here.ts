import { format } from 'node:util';
import { vi } from 'vitest';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { refold } from '../../src/cli/commands.ts';
import { exitWithError } from '../../src/cli/shared/exit-with-error.ts';
import { type CliResult, decisive } from './cli.ts';

/** Thrown where the command would end its process. */
class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs `refold …` to its end within this process, which saves the second that a process takes to start. It uses this process's environment and
 * output, so only one may run at a time. Whether a command ends its process, and what it does with signals and pipes, only `runCli` shows. The
 * application's code is compiled for tests, so its fingerprints differ from those of processes.
 */
export async function runCliHere(
  cliArguments: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  const printed = { stdout: '', stderr: '' };
  const listening = signals.map((signal) => process.listeners(signal));
  for (const name of decisive) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const spies = [
    vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => {
      printed.stdout += `${format(...values)}\n`;
    }),
    vi.spyOn(console, 'error').mockImplementation((...values: unknown[]) => {
      printed.stderr += `${format(...values)}\n`;
    }),
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      printed.stdout += String(text);
      return true;
    }),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      throw new Exit(Number(code ?? 0));
    }),
  ];
  process.exitCode = undefined;
  try {
    await runCommandLine(refold, cliArguments).catch((error: unknown) => {
      if (error instanceof Exit) throw error;
      exitWithError(error);
    });
    return { code: Number(process.exitCode ?? 0), signal: null, ...printed };
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return { code: error.code, signal: null, ...printed };
  } finally {
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
    for (const [index, signal] of signals.entries())
      for (const listener of process.listeners(signal))
        if (!listening[index]?.includes(listener)) process.off(signal, listener);
  }
}
