import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const rows = (await readFile('docs/guarantees.md', 'utf8'))
  .split('\n')
  .filter((line) => /^\| (?!---|guarantee )/.test(line));

test('no guarantee is stated twice', () => {
  // A reworded duplicate begins with the same words, and has the same tests.
  const begun = rows.map((row) => [...row.split(/\W+/).slice(0, 5), testsOf(row)].join(' '));
  expect(begun.filter((row, place) => begun.indexOf(row) < place)).toEqual([]);
});

test('every test that a guarantee names exists', () => {
  const named = rows.flatMap((row) => [...testsOf(row).matchAll(/`([^`]*\.test\.ts)`/g)].map(([, path = '']) => path));
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((path) => globSync([path, `test/**/${path}`]).length === 0)).toEqual([]);
});

function testsOf(row: string): string {
  return row.split('|').at(-2) ?? '';
}
