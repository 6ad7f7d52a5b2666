import { expect, test } from 'vitest';
import { type UsedChange, usageSentence } from '../../../src/runtime/schema-changes/change-usage.ts';

test('the sentence about usage names at most three changes with three clients each', () => {
  const lastAt = '2026-11-21T10:00:00Z';
  const client = (n: number) => `${n}`.padEnd(60, 'x'); // the longest name that is recorded
  const change = (n: number): UsedChange => {
    const path = `Balance.column${n}`;
    const askedBy = Array.from({ length: 40 }, (_, one) => ({
      path,
      client: client(one),
      clientVersion: '1.0',
      pins: '',
      operations: 1000,
      lastAt,
    }));
    const message = `${path} was removed.`;
    return { criticality: 'breaking', path, origin: path, concerns: path, message, askedBy };
  };
  const changes = Array.from({ length: 50 }, (_, n) => change(n));
  const clients = [0, 1, 2].map((n) => `${client(n)} 1.0 (1000 operations, last 2026-11-21)`).join(', ');
  const shown = [0, 1, 2].map((n) => `Balance.column${n} by ${clients}, 37 more`).join('; ');
  expect(usageSentence({ than: 'balance@1', changes, breaking: [], days: 30, recordedDays: 30 })).toBe(
    ` Asked for in the last 30 days: ${shown}; and 47 more.`,
  );
});
