import { expect, test } from 'vitest';
import { announcements, realFileLine, testsOver } from './announcements.ts';
import { citusLine, findCitus } from './citus-engine.ts';
import { realFiles } from './real-files.ts';
import { seed, seedOf } from './seed.ts';
import { testsOfPrograms, testsWithoutServers } from './test-kinds.ts';

test('the unit test run includes the files that start nothing, judged by their imports', () => {
  const files = testsWithoutServers();
  expect(files).toContain('test/projections/fold/fold.test.ts');
  expect(files).toContain('test/support/suite.test.ts');
  // A database, a process, a listening gateway, a socket.
  expect(files).not.toContain('test/store/log/append.test.ts');
  expect(files).not.toContain('test/cli/operating.test.ts');
  expect(files).not.toContain('test/gateway/http/http.test.ts');
  expect(files).not.toContain('test/support/tcp-proxy.test.ts');
});

test('the tests that start programs have a run of their own, judged by their imports', () => {
  const files = testsOfPrograms();
  expect(files).toContain('test/cli/processes.test.ts');
  expect(files).toContain('test/runtime/ownership/kill.test.ts');
  expect(files).toContain('test/admin-page/pages.test.ts');
  // A PostgreSQL, also one of the file's own, is no such program.
  expect(files).not.toContain('test/store/log/append.test.ts');
  expect(files).not.toContain('test/refold/lost-tail.test.ts');
});

test('the seed is new each day in CI, and each time elsewhere', () => {
  const evening = new Date('2031-07-31T23:59:00Z');
  const morning = new Date('2031-08-01T00:01:00Z');
  expect([seedOf({ CI: 'true' }, evening, 0.5), seedOf({ CI: 'true' }, morning, 0.5)]).toEqual([20310731, 20310801]);
  expect(seedOf({}, evening, 0.25)).not.toBe(seedOf({}, evening, 0.75));
});

test('a run prints its seed, and prints it again after a failure', () => {
  const lines: string[] = [];
  const { onTestRunStart, onTestRunEnd } = announcements((line) => lines.push(line));
  onTestRunStart?.([]);
  onTestRunEnd?.([], [], 'passed');
  const told = lines.filter((line) => line.includes(`SEED=${seed}`));
  expect(told).toHaveLength(1);
  onTestRunEnd?.([], [], 'failed');
  expect(lines.at(-1)).toBe(told[0]);
});

test('a run lists the real files that it finds, and where tests are left out without the others', () => {
  const lines: string[] = [];
  announcements((line) => lines.push(line)).onTestRunStart?.([]);
  for (const { name } of Object.values(realFiles)) expect(lines.join('\n')).toContain(`Real file ${name}: `);
  const file = { name: 'bookings.gz', variable: 'BOOKINGS', path: undefined, isLeftOut: false };
  const tests = testsOver('bank');
  expect(tests).toContain('test/examples/bank.test.ts');
  expect(realFileLine({ ...file, path: '/here' }, tests)).toBe('Real file bookings.gz: found at /here.');
  expect(realFileLine(file, ['a.test.ts'])).toBe(
    'Real file bookings.gz: missing. Tests over it are left out, or use generated data, in a.test.ts. Set BOOKINGS to its path.',
  );
  expect(realFileLine({ ...file, isLeftOut: true }, ['a.test.ts'])).toMatch(/^Real file bookings.gz: read in CI only/);
});

test('the system run says whether it runs the tests over Citus, and why not', () => {
  const binaries = { initdb: 'initdb', postgres: 'postgres' };
  expect(citusLine({ binaries, missing: undefined })).toBe('Citus: found. Tests over a cluster of it run.');
  expect(citusLine({ binaries: undefined, missing: 'there is no PostgreSQL 15' })).toBe(
    'Citus: left out with the tests over it, because there is no PostgreSQL 15.',
  );
  const { missing } = findCitus();
  expect(citusLine(findCitus())).toContain(missing ?? 'found');
});
