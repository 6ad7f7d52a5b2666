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
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
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
  // As written, except for the two things that a user has: the installed package, and an own database.
  const local = (program ?? '')
    .replace("'refold'", `'${resolve('src/index.ts')}'`)
    .replace(
      'gateway: { port: 0 }',
      `gateway: { port: 0, positionTimeout: 300_000 }, database: { url: '${database.url}' }`,
    );
  await writeFile(join(folder, 'program.ts'), local);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['program.ts'], { cwd: folder });
  expect(complaintsIn(stderr)).toEqual([]);
  expect(stdout).toBe(answer);
});

/** Complaints, without those of a machine that is too busy to open a background connection in time: it retries. */
function complaintsIn(stderr: string): readonly string[] {
  return stderr.split('\n').filter((line) => line !== '' && !line.includes('no connection within the connect timeout'));
}

test('the test file of testing.md passes as it is', async () => {
  const page = await readFile('docs/testing.md', 'utf8');
  const [, file] = /```ts\n(import { test } from 'node:test';\n[\s\S]*?)```/.exec(page) ?? [];
  const local = (file ?? '')
    .replace("'refold'", `'${resolve('src/index.ts')}'`)
    .replace("'refold/testing'", `'${resolve('src/testing.ts')}'`);
  await writeFile(join(folder, 'cart.test.ts'), local);
  const { stdout } = await promisify(execFile)(process.execPath, ['cart.test.ts'], { cwd: folder });
  expect(stdout).toMatch(/pass 2\n/);
  expect(stdout).toMatch(/fail 0\n/);
});
