import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

/** Features that an application has only if it configures or uses them: their files and functions. */
const unused: Readonly<Record<string, RegExp>> = {
  'admin API': /^admin\/|admin-page/,
  canary: /\/canar/i,
  'shadow comparison': /\/shadow/,
  'Citus placement': /^store\/(citus|distributed)\/|\/placed\.ts|withinPartitions/,
  'read stores': /-of-stores\.ts|\/store-|severalStores/i,
  replicas: /\/(open-)?replica/,
  'time travel': /\/row-history\.ts|\/history-fields\.ts|asOf/,
  'single connection': /\/(single-connection|operation-stream)/,
  tracing: /^tracing\.ts|\/traced-|traced[A-Z]/,
  'request log': /\/observed-operations\.ts/,
  reactors: /^(runtime|store)\/reactors\//,
  'set-based projections': /\/set-based\//,
  'inline projections': /^store\/inline\//,
};

/** More functions than that are a walk that nobody can follow. Lower a bound when a walk has become shorter. */
const mostFunctions: Readonly<Record<string, number>> = { mutation: 450, lookup: 125, list: 110 };

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('a plain application runs nothing of the features that it does not use', async () => {
  const program = join(import.meta.dirname, 'walks.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program, database.url], { maxBuffer: 2 ** 24 });
  const walks = Object.entries(JSON.parse(stdout) as Readonly<Record<string, readonly string[]>>); // as the program prints it
  expect(walks).toHaveLength(Object.keys(mostFunctions).length);
  for (const [walk, functions] of walks) {
    const files = new Set(functions.map((name) => name.split(' ')[0]));
    console.log(`${walk}: ${functions.length} functions of ${files.size} files`);
    for (const [feature, pattern] of Object.entries(unused))
      expect({ walk, feature, ran: functions.filter((name) => pattern.test(name)) }).toEqual({
        walk,
        feature,
        ran: [],
      });
    expect(functions.length, `functions of a ${walk}`).toBeLessThan(mostFunctions[walk] ?? 0);
    expect(functions.length, `functions of a ${walk}`).toBeGreaterThan(50); // else nothing was measured
  }
});
