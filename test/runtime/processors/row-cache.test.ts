import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Row } from '../../../src/projections/columns/row-codec.ts';
import type { FoldStep } from '../../../src/projections/fold/fold.ts';
import { createBloomFilter } from '../../../src/runtime/processors/bloom-filter.ts';
import { createRowCache } from '../../../src/runtime/processors/row-cache.ts';

const key = fc.nat(12);

test('a cache in front of a table returns every row as it is, and distinguishes inserts from updates', () => {
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('set' as const), keys: fc.array(key, { maxLength: 4 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('remove' as const), keys: fc.array(key, { maxLength: 3 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('write' as const), keep: fc.nat(5) }) },
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), fc.boolean(), fc.boolean(), (actions, complete, empty) => {
      const table = new Map<string, Row>();
      // The table holds other rows only if the cache was not told that it is empty.
      if (!complete && !empty) for (let n = 0; n < 6; n++) table.set(`[${n}]`, { n: -1 });
      const truth = new Map<string, Row | null>(table);
      const cache = createRowCache(complete);
      let count = 0;
      for (const one of actions) {
        if (one.kind === 'write') {
          const { inserted, updated, upsertedKeys, deletedKeys } = cache.changes();
          expect(upsertedKeys).toHaveLength(inserted.length + updated.length);
          for (const row of inserted) expect(table.has(String(row.text))).toBe(false);
          for (const row of [...inserted, ...updated]) table.set(String(row.text), row);
          for (const [n] of deletedKeys) table.delete(`[${n}]`);
          cache.written({ rows: one.keep, bytes: Infinity });
          expect(cache.changed).toBe(0);
          continue;
        }
        const steps = one.keys.map((n) => ({ text: `[${n}]`, key: [n] })) as unknown as FoldStep[]; // no event is read
        for (const missing of cache.missing(steps)) {
          const text = `[${missing[0]}]`;
          cache.learn(text, missing, table.get(text) ?? null);
        }
        for (const { text, key: rowKey } of steps) {
          expect(cache.get(text)).toEqual(truth.get(text) ?? null);
          const row = one.kind === 'set' ? { text, n: count++ } : null;
          cache.set(text, rowKey, row);
          truth.set(text, row);
        }
      }
      const { inserted, updated, deletedKeys } = cache.changes();
      for (const row of [...inserted, ...updated]) table.set(String(row.text), row);
      for (const [n] of deletedKeys) table.delete(`[${n}]`);
      const rows = [...truth].filter(([, row]) => row !== null);
      expect([...table].sort()).toEqual(rows.sort());
    }),
    { numRuns: 500 },
  );
});

test('the cache of a table that was empty reads no row that was never written, even after evictions', () => {
  const cache = createRowCache(true);
  const steps = (from: number) =>
    Array.from({ length: 1000 }, (_, n) => ({
      text: `["row ${from + n}"]`,
      key: [`row ${from + n}`],
    })) as unknown as FoldStep[];
  let asked = 0;
  for (let from = 0; from < 20_000; from += 1000) {
    asked += cache.missing(steps(from)).length;
    for (const { text, key: rowKey } of steps(from)) {
      if (cache.get(text) === undefined) cache.learn(text, rowKey, null);
      cache.set(text, rowKey, { text });
    }
    cache.written({ rows: 100, bytes: Infinity });
  }
  expect(asked).toBeLessThan(200); // one in a hundred; a few in ten thousand are read although they are missing
  expect(cache.missing(steps(0)).length).toBe(1000);
});

test('a cache over its limit evicts the rows that were changed longest ago', () => {
  const cache = createRowCache(false);
  const stepsOf = (names: readonly string[]) => names.map((text) => ({ text, key: [text] })) as unknown as FoldStep[];
  const change = (names: readonly string[]) => {
    for (const { text, key: rowKey } of stepsOf(names)) {
      if (cache.get(text) === undefined) cache.learn(text, rowKey, null);
      cache.set(text, rowKey, { text });
    }
  };
  change(['a', 'b', 'c']);
  cache.written({ rows: 10, bytes: Infinity });
  change(['a', 'd']);
  cache.written({ rows: 10, bytes: Infinity });
  change(['e', 'b']);
  cache.written({ rows: 4, bytes: Infinity });
  expect(cache.missing(stepsOf(['a', 'b', 'c', 'd', 'e']))).toEqual([['c']]);
  cache.written({ rows: 2, bytes: Infinity });
  expect(cache.missing(stepsOf(['a', 'b', 'c', 'd', 'e']))).toEqual([['a'], ['c'], ['d']]);

  const sized = createRowCache(false, undefined, ({ text }) => String(text).length);
  for (const [key, text] of [
    ['a', 'twelve bytes'],
    ['b', 'four'],
    ['c', 'five.'],
    ['b', 'now seven'],
  ] as const)
    sized.set(key, [key], { text });
  sized.learn('d', ['d'], { text: 'two' });
  expect(sized.bytes).toBe(12 + 9 + 5 + 3);
  sized.written({ rows: 4, bytes: 17 });
  expect([sized.missing(stepsOf(['a', 'b', 'c', 'd'])), sized.bytes]).toEqual([[['a']], 17]);
  sized.set('c', ['c'], null);
  expect(sized.bytes).toBe(12);
});

test('a bloom filter of keys never denies a key that was added, and denies nothing once it is full', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 200 }), (texts) => {
      const filter = createBloomFilter([16, 64]);
      for (const [index, text] of texts.entries()) {
        filter.add(text);
        for (const added of texts.slice(0, index + 1)) expect(filter.mayHold(added)).toBe(true);
      }
      if (texts.length > 80) expect(filter.mayHold('never added')).toBe(true);
    }),
  );
  expect(createBloomFilter().mayHold('never added')).toBe(false);
});
