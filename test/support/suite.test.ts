import { expect, test } from 'vitest';
import { announcements, leftOutLines } from './announcements.ts';
import { seed, seedOf } from './seed.ts';
import { testsWithoutServers } from './without-servers.ts';

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

test('the seed is new each day in CI, and each time elsewhere', () => {
  const evening = new Date('2031-07-31T23:59:00Z');
  const morning = new Date('2031-08-01T00:01:00Z');
  expect([seedOf({ CI: 'true' }, evening, 0.5), seedOf({ CI: 'true' }, morning, 0.5)]).toEqual([20310731, 20310801]);
  expect(seedOf({}, evening, 0.25)).not.toBe(seedOf({}, evening, 0.75));
});

test('a run prints its seed, prints it again after a failure, and lists what it leaves out', () => {
  const lines: string[] = [];
  const { onTestRunStart, onTestRunEnd } = announcements((line) => lines.push(line));
  onTestRunStart?.([]);
  onTestRunEnd?.([], [], 'passed');
  const told = lines.filter((line) => line.includes(`SEED=${seed}`));
  expect(told).toHaveLength(1);
  onTestRunEnd?.([], [], 'failed');
  expect(lines.at(-1)).toBe(told[0]);
  const missing = { name: 'bookings.gz', variable: 'BOOKINGS', path: undefined };
  expect(leftOutLines([missing, { ...missing, path: '/here' }])).toEqual([
    'Left out: tests over the real file bookings.gz, which is missing. Set BOOKINGS to its path.',
  ]);
});
