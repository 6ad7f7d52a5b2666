import { expect, test } from 'vitest';
import {
  type Action,
  type ActionKind,
  actionNames,
  describeAction,
  gateways,
  plan,
  workers,
} from '../../chaos/plan.ts';

function first(seed: number, count: number): Action[] {
  const steps = plan(seed);
  return Array.from({ length: count }, () => steps.next().value.action);
}

test('a seed repeats the faults of a run, and another one makes others', () => {
  expect(first(7, 200)).toEqual(first(7, 200));
  expect(first(7, 200)).not.toEqual(first(8, 200));
});

test('every deal begins with each kind of fault: any seed includes all of them in a short run', () => {
  const kinds = [...actionNames.values()].toSorted();
  for (const seed of [1, 2, 20261122])
    expect(
      first(seed, kinds.length)
        .map(({ kind }) => kind)
        .toSorted(),
    ).toEqual(kinds);
});

test('faults hit only existing processes', () => {
  const places = { worker: workers, gateway: gateways };
  for (const action of first(1, 1_000)) {
    if ('worker' in action) expect(action.worker).toBeLessThan(workers);
    if ('gateway' in action) expect(action.gateway).toBeLessThan(gateways);
    if ('at' in action && action.at !== 'traffic') expect(action.at.index).toBeLessThan(places[action.at.role]);
  }
});

test('faults that are left out are not made', () => {
  const without = new Set<ActionKind>(['half-open', 'promote without the tail']);
  const steps = plan(7, without);
  const done = new Set(Array.from({ length: 500 }, () => steps.next().value.action.kind));
  expect(done.size).toBe(actionNames.size - 2);
  expect([...without].filter((kind) => done.has(kind))).toEqual([]);
});

test('a fault is described in one line', () => {
  expect(describeAction({ kind: 'kill', worker: 1, watched: true })).toBe('kill worker=1 watched=true');
  expect(describeAction({ kind: 'half-open', at: { role: 'gateway', index: 1 }, seconds: 2 })).toBe(
    'half-open at=gateway 1 seconds=2',
  );
});
