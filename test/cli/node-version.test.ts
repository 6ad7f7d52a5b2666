import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nodeProblem } from '../../src/cli/node-version.ts';

test('an older Node is told of, and what is needed is what package.json says', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(engines.node).toBe('>=22.18');
  for (const version of ['22.18.0', '24.0.0', '23.1.0']) expect(nodeProblem(version)).toBeUndefined();
  for (const version of ['20.20.2', '22.17.9', '18.0.0'])
    expect(nodeProblem(version)).toBe(
      `Refold needs Node 22.18 or newer, this is ${version}. Install a newer one, or put it first in PATH.`,
    );
});

test('the command line imports nothing by name that an older Node lacks, so that it comes to telling', () => {
  // Where a name is missing, a program is refused before its first line.
  const main = readFileSync('src/cli/main.ts', 'utf8');
  expect([...main.matchAll(/import \{[^}]*\} from 'node:/g)]).toEqual([]);
});
