import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the lockfile names no registry: an install uses the configured one', () => {
  const lockfile = readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8');
  expect(lockfile).not.toContain('"resolved"');
  expect(lockfile).not.toMatch(/\.tgz/);
});
