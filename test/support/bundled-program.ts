import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

// In the project, because the program looks for the migrations in the folders above it. Each run has a folder in it.
const folder = join(import.meta.dirname, '../../.refold/test-programs');
const bundles = new Map<string, Promise<string>>();

/** The folder for the bundles of the run that this process has started. */
export function bundlesOfTheRun(starter: number): string {
  return join(folder, String(starter));
}

/**
 * Bundles a program with everything that it imports, once in each process of the test run. Tests start many processes and wait for them: a bundle
 * starts in a quarter of the time that Node needs to load a thousand files.
 */
export function bundledProgram(program: string): Promise<string> {
  const bundle = bundles.get(program) ?? build(program);
  bundles.set(program, bundle);
  return bundle;
}

async function build(program: string): Promise<string> {
  const { rolldown } = await import('rolldown');
  const name = basename(program, '.ts');
  const own = join(bundlesOfTheRun(process.ppid), String(process.pid), name);
  // An optional package of the driver, which is not installed.
  const bundle = await rolldown({ input: program, platform: 'node', external: ['pg-native'], logLevel: 'silent' });
  await bundle.write({ dir: own, entryFileNames: `${name}.mjs`, chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
  return join(own, `${name}.mjs`);
}

/** For the process that started the workers of the run, at its end: removes its bundles, and those of runs that were killed. */
export function removeBundles(): void {
  if (!existsSync(folder)) return;
  for (const run of readdirSync(folder))
    if (Number(run) === process.pid || !isRunning(Number(run)))
      rmSync(join(folder, run), { recursive: true, force: true });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
