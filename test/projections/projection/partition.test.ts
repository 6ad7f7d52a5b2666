import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, defineProjection, t } from '../../../src/index.ts';
import { partitionOf, reachedBy } from '../../../src/projections/projection/partition.ts';

const account = defineEvents('account', { Opened: z.object({}) });

test('the partition of a key never changes, because stored rows were folded by it', () => {
  const keys = ['["account-1"]', '["account-2"]', '["ünïcödé"]', '[1,"b"]', ''];
  expect(keys.map((key) => partitionOf(key, 4))).toMatchInlineSnapshot(`
    [
      2,
      3,
      1,
      0,
      1,
    ]
  `);
  expect(keys.map((key) => partitionOf(key, 64))).toMatchInlineSnapshot(`
    [
      38,
      43,
      29,
      16,
      45,
    ]
  `);
});

test('keys fall evenly into partitions', () => {
  for (const partitions of [2, 3, 7, 16, 64]) {
    const counts = Array.from({ length: partitions }, () => 0);
    for (let index = 0; index < 64_000; index++) {
      const partition = partitionOf(`["account-${index}"]`, partitions);
      counts[partition] = (counts[partition] ?? 0) + 1;
    }
    const fair = 64_000 / partitions;
    expect(Math.max(...counts)).toBeLessThan(fair * 1.2);
    expect(Math.min(...counts)).toBeGreaterThan(fair * 0.8);
  }
});

test('a row is at the position of its partition, or of its former partition before a change of their number', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.array(fc.bigInt({ min: 0n, max: 100n }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.bigInt({ min: 0n, max: 100n }), { minLength: 1, maxLength: 4 }),
      (text, before, now) => {
        const floors = [{ of: before.length, checkpoints: before }];
        const partitions = now.map((checkpoint, partition) => ({
          partition,
          partitions: now.length,
          checkpoint,
          floors,
        }));
        const then = before[partitionOf(text, before.length)] ?? 0n;
        const since = now[partitionOf(text, now.length)] ?? 0n;
        expect(reachedBy(text, partitions)).toBe(then > since ? then : since);
      },
    ),
  );
});

test.each([
  [{ partitions: 0 }, "'partitions' is a whole number from 1 to 64, found 0."],
  [{ partitions: 65 }, "'partitions' is a whole number from 1 to 64, found 65."],
  [{ partitions: 1.5 }, "'partitions' is a whole number from 1 to 64, found 1.5."],
] as const)('an invalid number of partitions is refused: %j', (option, message) => {
  const declare = () =>
    defineProjection({
      name: 'openings',
      version: 1,
      events: account,
      table: { accountId: t.text().primaryKey() },
      key: (event) => event.streamId,
      evolve: { Opened: () => ({}) },
      ...option,
    });
  expect(declare).toThrow(message);
});

test('a unique column is refused beside partitions', () => {
  const declare = () =>
    defineProjection({
      name: 'openings',
      version: 1,
      events: account,
      table: { accountId: t.text().primaryKey(), email: t.text().unique() },
      key: (event) => event.streamId,
      evolve: { Opened: () => ({ email: '' }) },
      partitions: 2,
    });
  expect(declare).toThrow("'email' is unique over all rows");
});
