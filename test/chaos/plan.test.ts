import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Action, describeAction, plan, workers } from '../../chaos/plan.ts';

function first(seed: number, count: number): Action[] {
  const steps = plan(seed);
  return Array.from({ length: count }, () => steps.next().value.action);
}

test('a seed repeats the faults of a run, and another one makes others', () => {
  expect(first(7, 200)).toEqual(first(7, 200));
  expect(first(7, 200)).not.toEqual(first(8, 200));
});

test('every deal has every kind of fault, and names workers that there are', () => {
  const kinds = new Set(first(1, 1_000).map(({ kind }) => kind));
  for (const seed of [1, 2, 3]) expect(new Set(first(seed, 60).map(({ kind }) => kind))).toEqual(kinds);
  expect(first(1, 1_000).every((action) => !('worker' in action) || action.worker < workers)).toBe(true);
});

test('the minute that CI has meets every kind of fault, also on a slow machine', () => {
  const seed = Number(/npm run chaos -- --seed (\d+) --minutes 1 /.exec(readFileSync('.ci/run', 'utf8'))?.[1]);
  const kinds = new Set(first(seed, 1_000).map(({ kind }) => kind));
  // Of about fifty in a minute.
  expect(new Set(first(seed, 20).map(({ kind }) => kind))).toEqual(kinds);
});

test('a fault is told in one line', () => {
  expect(describeAction({ kind: 'kill', worker: 1, watched: true })).toBe('kill worker=1 watched=true');
});
