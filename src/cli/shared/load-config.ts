import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadEnvFile } from 'node:process';
import { pathToFileURL } from 'node:url';
import type { Config } from '../../config/define-config.ts';
import { underEnvironment } from '../../config/environment.ts';
import { RefoldError } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';

const names = ['refold.config.ts', 'refold.config.js', 'refold.config.mjs'];

/** The argument that all commands share. */
export const configArgument = {
  config: {
    type: 'string',
    description: `The application's file. Default: ${names[0]} in this folder`,
    alias: 'c',
    valueHint: 'FILE',
  },
} as const;

/**
 * Loads the application that a file declares, and applies the options that the environment sets. Before that, a file `.env` in this folder
 * adds variables that are not set.
 *
 * @throws RefoldError `INVALID_CONFIG`
 */
export async function loadConfig(file: string | undefined): Promise<Config> {
  const path = file ? resolve(file) : names.map((name) => resolve(name)).find(existsSync);
  if (!path || !existsSync(path)) {
    const looked = file ? `There is no file '${file}'.` : `There is no ${names.join(', ')} in this folder.`;
    throw new RefoldError(
      'INVALID_CONFIG',
      `${looked} Name the file that has 'export default defineConfig({ … })' with --config FILE.`,
    );
  }
  if (existsSync('.env')) loadEnvFile('.env');
  const loaded = await load(path);
  if (!isConfig(loaded.default)) {
    throw new RefoldError(
      'INVALID_CONFIG',
      `'${path}' does not export a defineConfig result. Write 'export default defineConfig({ … })'.`,
    );
  }
  return underEnvironment(loaded.default, process.env);
}

async function load(path: string): Promise<{ readonly default?: unknown }> {
  try {
    return await import(pathToFileURL(path).href);
  } catch (cause) {
    if (cause instanceof RefoldError) throw cause;
    const problem = reasonOf(cause);
    throw new RefoldError(
      'INVALID_CONFIG',
      `'${path}' can't be loaded: ${problem}${placeOf(cause)}${lineOf(cause)}`,
      { path },
      { cause },
    );
  }
}

/** Returns the place in the application's own files that an error comes from, if the stack shows it. */
function placeOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const places = stack.matchAll(/(?:^|\(|at )(?:file:\/\/)?(\/[^\s():]+:\d+)(?::\d+)?\)?$/gm);
  const own = [...places].map(([, place]) => String(place)).find((place) => !place.includes('/node_modules/'));
  return own === undefined ? '' : ` (at ${own.replace(/\?refold=\d+/, '')})`;
}

/** Returns the lines of a syntax error with its mark, as Node shows them above the stack. */
function lineOf(error: unknown): string {
  const found = error instanceof SyntaxError && /^file:.*:\d+\n((?:.*\n)+? *\^+)\n/.exec(error.stack ?? '');
  return found ? `\n\n${found[1]}` : '';
}

function isConfig(value: unknown): value is Config {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'config';
}
