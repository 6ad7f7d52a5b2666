import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** A file that imports one of these may start a server or a process, or open a database. */
const starters: readonly RegExp[] = [
  /^test\/support\/(test-database|own-server|postgres-for-the-run|postgres-cluster)\.ts$/,
  /^src\/store\/embedded\//,
  /^src\/gateway\/(create-gateway|http\/http-server)\.ts$/,
  /^(node:child_process|node:http|node:net|pg)$/,
];

/** The test files that start neither servers nor processes, judged by their imports: paths from the root of the project. */
export function testsWithoutServers(): readonly string[] {
  return filesThat((file) => ![...reached(file)].some((one) => starters.some((starter) => starter.test(one))));
}

/** It starts PostgreSQL, which is no program of ours: most tests need it. */
const serverOfTests = 'test/support/postgres-cluster.ts';

/** The test files that start programs, such as the command line, samples, processes that are killed, or a browser: paths as above. */
export function testsOfPrograms(): readonly string[] {
  return filesThat((file) => {
    const all = reached(file, new Set([serverOfTests]));
    return all.has('node:child_process') || all.has('playwright-core');
  });
}

function filesThat(belong: (file: string) => boolean): readonly string[] {
  const files = globSync(['test/**/*.test.ts', 'examples/**/*.test.ts'], { cwd: root, exclude: ['test/system/**'] });
  return files.filter(belong).sort();
}

/** What a file imports, recursively, without the imports of `src/`: a test's own imports show its intent. Nor are those of the files in `seen` followed. */
export function reached(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  if (!file.endsWith('.ts') || file.startsWith('src/')) return seen;
  const text = readFileSync(join(root, file), 'utf8');
  for (const [, target = ''] of text.matchAll(/^(?:import|export)\s(?!type\b)[^;']*'([^']+)';$/gm)) {
    reached(target.startsWith('.') ? join(dirname(file), target) : target, seen);
  }
  return seen;
}
