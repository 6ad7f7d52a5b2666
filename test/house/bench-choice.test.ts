import { describe, expect, test } from 'vitest';
import { chooseScenarios } from '../../bench/choose-scenarios.ts';
import { scenarios } from '../../bench/scenarios/all.ts';

const always = { name: 'append-1x1' };
const fullOnly = { name: 'append-1x8', fullOnly: true };
const other = { name: 'by-id' };
const all = [always, fullOnly, other];

describe('a run of the benchmarks measures', () => {
  test('everything', () => {
    expect(chooseScenarios(all, { quick: false, only: [] })).toEqual(all);
  });

  test('with --quick what it has time for', () => {
    expect(chooseScenarios(all, { quick: true, only: [] })).toEqual([always, other]);
  });

  test('with --in-turns a third of it on each of three successive days', () => {
    const many = Array.from({ length: 10 }, (_, index) => ({ name: String(index) }));
    const days = [20_000, 20_001, 20_002].map((day) => chooseScenarios(many, { quick: true, only: [], day }));
    expect(new Set(days.flat())).toEqual(new Set(many));
    expect(days.map(({ length }) => length).sort()).toEqual([3, 3, 4]);
  });

  test.each([
    true,
    false,
  ])('with --only all scenarios that have one of the parts in their name, --quick %s', (quick) => {
    expect(chooseScenarios(all, { quick, only: ['1x8'] })).toEqual([fullOnly]);
    expect(chooseScenarios(all, { quick, only: ['append', 'by-'] })).toEqual(all);
    expect(chooseScenarios(all, { quick, only: ['nothing'] })).toEqual([]);
  });
});

test('every scenario of the benchmarks has a unique name', () => {
  const names = scenarios.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});
