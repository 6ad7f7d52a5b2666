import { expect, test } from 'vitest';
import { type RunResult, summary } from '../../scripts/run-result.ts';
import { problem } from '../support/ci-reporter.ts';

const well: RunResult = { passed: 3, failed: 0, success: true, problems: [] };

test('CI ends with the failures of each run, and prints the totals last', () => {
  const message = `expected 1 to be 2\nat test/a.test.ts:7\n\n${'a line of a difference\n'.repeat(100)}`;
  const lines = summary(
    new Map([
      ['check', { passed: 0, failed: 1, success: false, problems: [{ name: 'lint', message: 'See its output.' }] }],
      ['suite', { passed: 5, failed: 1, success: false, problems: [{ name: 'test/a.test.ts > adds', message }] }],
      ['system', undefined],
      ['chaos', well],
    ]),
  );
  expect(lines.slice(0, 5)).toEqual([
    'FAILED check: lint',
    '    See its output.',
    'FAILED suite: test/a.test.ts > adds',
    '    expected 1 to be 2',
    '    at test/a.test.ts:7',
  ]);
  expect(lines.slice(-2)).toEqual(['FAILED system: it did not end', '8 passed, 3 failed']);
  expect(lines.length).toBeLessThan(20);
});

test('a run that failed without a failed test is named as well', () => {
  expect(summary(new Map([['suite', { ...well, success: false }]]))).toEqual([
    'FAILED suite: see its output',
    '3 passed, 1 failed',
  ]);
});

test('if nothing failed, only the totals are printed', () => {
  expect(
    summary(
      new Map([
        ['suite', well],
        ['chaos', well],
      ]),
    ),
  ).toEqual(['6 passed, 0 failed']);
});

test('a property that failed is reported with the reason first, then with its counterexample', () => {
  const stacks = [{ method: '', file: 'test/a.test.ts', line: 7, column: 1 }];
  const { message } = problem('a > holds', {
    message: 'Property failed after 6 tests\nCounterexample: [3]',
    cause: { message: 'expected 1 to be 2', diff: '- 2\n+ 1', stacks },
  });
  expect(message.split('\n')).toEqual([
    ...['expected 1 to be 2', 'at test/a.test.ts:7', '- 2', '+ 1'],
    ...['Property failed after 6 tests', 'Counterexample: [3]'],
  ]);
});
