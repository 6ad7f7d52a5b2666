import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reached } from '../support/without-servers.ts';
import { leftOut } from '../system/left-out.ts';

const root = join(import.meta.dirname, '../..');
/** What makes a database or a server for a test. */
const makers = ['test/support/test-database.ts', 'test/support/own-server.ts', 'test/support/cli.ts'];

function filesOf(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const found = globSync(pattern, { cwd: root });
    expect(found, pattern).not.toEqual([]);
    return found;
  });
}

test('what the run on the older PostgreSQL leaves out is there, each for one reason', () => {
  const files = Object.values(leftOut).flatMap(filesOf);
  expect(new Set(files).size).toBe(files.length);
});

test('what it leaves out for being without PostgreSQL touches none', () => {
  const files = filesOf(leftOut.withoutPostgres);
  const touching = files.filter((file) => [...reached(file)].some((one) => makers.includes(one)));
  expect(touching).toEqual([]);
});
