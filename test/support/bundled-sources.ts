import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestProject } from 'vitest/node';
import { bundlesOfTheRun } from './bundled-program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A module for Node's `--import`, with which programs that import the sources load a bundle of them. */
    bundledSources: string;
  }
}

const sources = join(import.meta.dirname, '../../src');
/** What programs may import: the package, its test kit, its command. */
const entries = ['index', 'testing', 'cli/main'];

/**
 * Vitest's global setup for tests that start many programs: bundles the sources with all packages. `refold --help` then needs a
 * fifth of the CPU time, because Node loads ten files instead of a thousand. Programs still name the files in `src/`.
 */
export default async function setup(project: TestProject): Promise<void> {
  // A bundle does not follow edits.
  if (project.vitest.config.watch) return;
  const folder = join(bundlesOfTheRun(process.pid), project.name);
  const hook = join(folder, 'use-bundle.mjs');
  await bundle(folder);
  writeFileSync(hook, useBundle);
  project.provide('bundledSources', hook);
}

async function bundle(folder: string): Promise<void> {
  const { rolldown } = await import('rolldown');
  const built = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [entry, join(sources, `${entry}.ts`)])),
    platform: 'node',
    // An optional package of the driver, which is not installed; and packages that load files from their own folders.
    external: ['pg-native', 'pino', 'pino-pretty'],
    preserveEntrySignatures: 'strict',
    logLevel: 'silent',
    plugins: [{ name: 'own-places', transform: (code, file) => (isSource(file) ? ownPlaces(code, file) : null) }],
  });
  await built.write({ dir: folder, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  await built.close();
}

const isSource = (file: string) => file.startsWith(sources);

/** A source finds the files beside it, such as migrations, also from within the bundle. */
function ownPlaces(code: string, file: string): string {
  return code
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(file)))
    .replaceAll('import.meta.filename', JSON.stringify(file))
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href));
}

const useBundle = `
import module from 'node:module';
const sources = ${JSON.stringify(pathToFileURL(`${sources}/`).href)};
const entries = ${JSON.stringify(entries)};
// npm may run on an older Node, and needs none of this.
module.registerHooks?.({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const importer = context.parentURL;
    if (!found.url.startsWith(sources) || importer?.startsWith(sources)) return found;
    const entry = found.url.slice(sources.length).replace(/\\.ts$/, '');
    if (entries.includes(entry)) return { ...found, url: new URL(entry + '.mjs', import.meta.url).href, format: 'module' };
    if (importer === undefined) return found; // a program of its own
    throw new Error(\`\${importer} imports src/\${entry}.ts, whose state would exist twice beside the bundle. Import src/index.ts.\`);
  },
});
`;
