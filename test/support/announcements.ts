import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter } from 'vitest/node';
import { type RealFile, realFiles } from './real-files.ts';
import { seed } from './seed.ts';

const root = join(import.meta.dirname, '../..');

/** Vitest's reporter that prints the seed of a run, prints it again after a failure, and lists the real files that the run finds and lacks. */
export function announcements(print: (line: string) => void = console.log): Reporter {
  const seedLine = `Random inputs follow from seed ${seed}. The same again: SEED=${seed} npm test -- FILE, or npm run test:programs -- FILE if it starts programs`;
  return {
    onTestRunStart() {
      print(seedLine);
      for (const [key, file] of Object.entries(realFiles)) print(realFileLine(file, testsOver(key)));
    },
    onTestRunEnd(_modules, _errors, reason) {
      if (reason === 'failed') print(seedLine);
    },
  };
}

/** Says whether a real file was found, or where tests are left out without it. */
export function realFileLine({ name, variable, path, isLeftOut }: RealFile, tests: readonly string[]): string {
  if (path !== undefined) return `Real file ${name}: found at ${path}.`;
  const why = isLeftOut ? 'read in CI only, because it takes long' : 'missing';
  return `Real file ${name}: ${why}. Tests over it are left out, or use generated data, in ${tests.join(', ')}. Set ${variable} to its path.`;
}

/** The test files that name the real file. */
export function testsOver(key: string): readonly string[] {
  const files = globSync(['test/**/*.test.ts', 'examples/**/*.test.ts'], { cwd: root }).sort();
  return files.filter((file) => readFileSync(join(root, file), 'utf8').includes(`realFiles.${key}.`));
}
