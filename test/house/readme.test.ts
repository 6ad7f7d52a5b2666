import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'refold-readme-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

test("the README's program prints the answer that the README shows", async () => {
  const readme = await readFile('README.md', 'utf8');
  const [, program] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const [, answer] = /```json\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(readme.indexOf('```ts')).toBeLessThan(400); // on the first screen
  // As written, but for the two things that a user has: the installed package, and a database of one's own.
  const local = (program ?? '')
    .replace("'refold'", `'${resolve('src/index.ts')}'`)
    .replace('gateway: { port: 0 }', `gateway: { port: 0 }, database: { url: '${database.url}' }`);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'program.ts'), local);
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['program.ts'], { cwd: folder });
  expect(stderr).toBe('');
  expect(stdout).toBe(answer);
});
