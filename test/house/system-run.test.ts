import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reached } from '../support/test-kinds.ts';
import { leftOut } from '../system/left-out.ts';

const root = join(import.meta.dirname, '../..');
/** Creates a database or a server for a test. */
const makers = ['test/support/test-database.ts', 'test/support/own-server.ts', 'test/support/cli.ts'];

function filesOf(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const found = globSync(pattern, { cwd: root });
    expect(found, pattern).not.toEqual([]);
    return found;
  });
}

test('the files that the run on the older PostgreSQL leaves out exist, each for one reason', () => {
  const files = Object.values(leftOut).flatMap(filesOf);
  expect(new Set(files).size).toBe(files.length);
});

test('the files that it leaves out as independent of PostgreSQL do not use it', () => {
  const files = filesOf(leftOut.withoutPostgres);
  const touching = files.filter((file) => [...reached(file)].some((one) => makers.includes(one)));
  expect(touching).toEqual([]);
});
