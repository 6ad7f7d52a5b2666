import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { slowFiles } from '../support/slow-files.ts';

test('the files that run first exist', () => {
  const root = join(import.meta.dirname, '../..');
  expect(slowFiles.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
