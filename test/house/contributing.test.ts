import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

test('every file that CONTRIBUTING.md names exists', async () => {
  const text = await readFile('CONTRIBUTING.md', 'utf8');
  const named = [...text.matchAll(/`((?:src|test|docs|migrations|examples)\/[\w./-]+\.\w+)`/g)];
  const linked = [...text.matchAll(/\]\(([\w/-]+\.md)[^)]*\)/g)];
  const paths = [...new Set([...named, ...linked].map(([, path = '']) => path))];
  expect(paths.length).toBeGreaterThan(30);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});
