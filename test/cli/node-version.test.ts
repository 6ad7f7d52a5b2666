import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nodeProblem } from '../../src/cli/node-version.ts';

test('an older Node is refused with a message, and the required version is that of package.json', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(engines.node).toBe('>=22.18');
  for (const version of ['22.18.0', '24.0.0', '23.1.0']) expect(nodeProblem(version)).toBeUndefined();
  for (const version of ['20.20.2', '22.17.9', '18.0.0'])
    expect(nodeProblem(version)).toBe(
      `Refold needs Node 22.18 or newer, this is ${version}. Install a newer one, or put it first in PATH.`,
    );
});

test('the command line imports no name that an older Node lacks: the message can be printed', () => {
  // If a name is missing, Node refuses the program before its first line.
  const main = readFileSync('src/cli/main.ts', 'utf8');
  expect([...main.matchAll(/import \{[^}]*\} from 'node:/g)]).toEqual([]);
});
