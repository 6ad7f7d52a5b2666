import type { Reporter } from 'vitest/node';
import { type RealFile, realFiles } from './real-files.ts';
import { seed } from './seed.ts';

/** Vitest's reporter that prints the seed of a run, prints it again after a failure, and lists what the run leaves out. */
export function announcements(print: (line: string) => void = console.log): Reporter {
  const seedLine = `Random inputs follow from seed ${seed}. The same again: SEED=${seed} npm test -- FILE`;
  return {
    onTestRunStart() {
      print(seedLine);
      for (const line of leftOutLines(Object.values(realFiles))) print(line);
    },
    onTestRunEnd(_modules, _errors, reason) {
      if (reason === 'failed') print(seedLine);
    },
  };
}

export function leftOutLines(files: readonly RealFile[]): readonly string[] {
  return files
    .filter(({ path }) => path === undefined)
    .map(
      ({ name, variable }) =>
        `Left out: tests over the real file ${name}, which is missing. Set ${variable} to its path.`,
    );
}
