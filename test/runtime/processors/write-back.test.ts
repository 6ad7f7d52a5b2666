import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { type Unwritten, writeIsDue } from '../../../src/runtime/processors/write-back.ts';

const writeBack = join(import.meta.dirname, '../../../src/runtime/processors/write-back.ts');

/** Rows that a process keeps in each state, with a heap limit of `limit` MB of which `used` are in use. */
function kept(limit: number, used: number): readonly number[] {
  const program = `
    import { rowsToKeep } from ${JSON.stringify(writeBack)};
    const held = Array.from({ length: ${used} }, () => Array(131_072).fill(0.5)); // 1 MB each
    console.log(JSON.stringify([rowsToKeep('building').rows, rowsToKeep('active').rows, held.length]));`;
  const flags = [`--max-old-space-size=${limit}`, '--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8' })).slice(0, 2);
}

test('a build caches as many rows as a quarter of the heap has room for, and a served version always the same number', () => {
  expect(kept(1024, 0)).toEqual([1_000_000, 100_000]);
  expect(kept(1024, 400)).toEqual([100_000, 100_000]);
});

test('a build writes by time, or if memory is short, at the minimum number of cached rows', () => {
  const unwritten: Unwritten = {
    state: 'building',
    events: 0,
    rows: 0,
    bytes: 0,
    leftOut: 0,
    sinceMs: 0,
    writeTook: 0,
  };
  expect(writeIsDue({ ...unwritten, events: 10_000_000, rows: 99_999, sinceMs: 4_999 })).toBe(false);
  expect(writeIsDue({ ...unwritten, rows: 1_000_000 })).toBe(true);
  expect(writeIsDue({ ...unwritten, sinceMs: 5_000 })).toBe(true);
  // Slow writes are made less often, up to a limit.
  expect(writeIsDue({ ...unwritten, sinceMs: 19_999, writeTook: 1_000 })).toBe(false);
  expect(writeIsDue({ ...unwritten, sinceMs: 20_000, writeTook: 1_000 })).toBe(true);
  expect(writeIsDue({ ...unwritten, sinceMs: 30_000, writeTook: 10_000 })).toBe(true);
  expect(writeIsDue({ ...unwritten, leftOut: 5_000 })).toBe(true);
});

test('rows that are large are written before they fill the heap', () => {
  const limit = getHeapStatistics().heap_size_limit;
  for (const state of ['building', 'active'] as const) {
    const unwritten: Unwritten = { state, events: 0, rows: 0, bytes: 0, leftOut: 0, sinceMs: 0, writeTook: 0 };
    expect(writeIsDue({ ...unwritten, bytes: limit / 10 })).toBe(false);
    expect(writeIsDue({ ...unwritten, bytes: limit / 8 })).toBe(true);
  }
});

test('a served version writes as many rows as a list of changes has room for', () => {
  const unwritten: Unwritten = { state: 'active', events: 0, rows: 0, bytes: 0, leftOut: 0, sinceMs: 0, writeTook: 0 };
  expect(writeIsDue({ ...unwritten, events: 99_999, rows: 4_999, sinceMs: 4_999 })).toBe(false);
  expect(writeIsDue({ ...unwritten, rows: 5_000 })).toBe(true);
  expect(writeIsDue({ ...unwritten, events: 100_000 })).toBe(true);
  expect(writeIsDue({ ...unwritten, sinceMs: 5_000 })).toBe(true);
});
