import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isTurnOf } from '../support/turns.ts';

test('on three successive days each file has its turn once, each day about a third of the files', () => {
  const files = globSync('test/**/*.test.ts');
  const days = [20310729, 20310730, 20310731].map((seed) => files.filter((file) => isTurnOf(file, seed)));
  expect(days.flat().toSorted()).toEqual(files.toSorted());
  for (const day of days) expect(Math.abs(day.length - files.length / 3)).toBeLessThan(files.length / 10);
});
