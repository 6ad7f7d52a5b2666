import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { heirsAmong, spreadUnits } from '../../../src/runtime/ownership/spread-units.ts';
import type { AnnouncedProcess } from '../../../src/store/ownership/processes.ts';

/** Some units, and processes that each declare some of them and own some of those. */
const announced = fc
  .record({
    versions: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 }),
    processes: fc.integer({ min: 1, max: 6 }),
  })
  .chain(({ versions, processes }) => {
    const units = versions.flatMap((partitions, version) =>
      Array.from({ length: partitions }, (_, partition) => `processor p${version}@1/${partition}`),
    );
    return fc
      .record({
        declared: fc.array(fc.subarray(units), { minLength: processes, maxLength: processes }),
        owners: fc.array(fc.integer({ min: -1, max: processes - 1 }), {
          minLength: units.length,
          maxLength: units.length,
        }),
        kept: fc.subarray(units),
      })
      .map(({ declared, owners, kept }) =>
        declared.map((declares, index): AnnouncedProcess => {
          const owns = units.filter((unit, place) => owners[place] === index && declares.includes(unit));
          return { id: `process-${index}`, declares, owns, keeps: owns.filter((unit) => kept.includes(unit)) };
        }),
      );
  });

const settled = (processes: readonly AnnouncedProcess[]): AnnouncedProcess[] => {
  const spread = spreadUnits(processes);
  return processes.map((process) => ({
    ...process,
    owns: [...spread].filter(([, id]) => id === process.id).map(([unit]) => unit),
  }));
};

const loadsOf = (processes: readonly AnnouncedProcess[]) => processes.map(({ owns }) => owns.length);

/** The smallest sum of squares over all assignments of every unit to a process that declares it. */
function bestSumOfSquares(processes: readonly AnnouncedProcess[]): number {
  const units = [...new Set(processes.flatMap(({ declares }) => declares))];
  const loads = processes.map(() => 0);
  let best = Number.POSITIVE_INFINITY;
  const place = (index: number): void => {
    const unit = units[index];
    if (unit === undefined) {
      best = Math.min(best, sumOfSquares(loads));
      return;
    }
    for (const [number, { declares }] of processes.entries()) {
      if (!declares.includes(unit)) continue;
      loads[number] = (loads[number] ?? 0) + 1;
      place(index + 1);
      loads[number] = (loads[number] ?? 0) - 1;
    }
  };
  place(0);
  return best;
}

const sumOfSquares = (loads: readonly number[]) => loads.reduce((sum, load) => sum + load * load, 0);

describe('spreading units', () => {
  test('every declared unit is assigned to a process that declares it', () => {
    fc.assert(
      fc.property(announced, (processes) => {
        const spread = spreadUnits(processes);
        expect(new Set(spread.keys())).toEqual(new Set(processes.flatMap(({ declares }) => declares)));
        for (const [unit, id] of spread) expect(processes.find((one) => one.id === id)?.declares).toContain(unit);
      }),
    );
  });

  test('is as even as possible for any declarations', () => {
    fc.assert(
      fc.property(
        announced.filter(
          (processes) => processes.length <= 4 && new Set(processes.flatMap((p) => p.declares)).size <= 7,
        ),
        (processes) => {
          const free = processes.map((process) => ({ ...process, keeps: [] }));
          expect(sumOfSquares(loadsOf(settled(free)))).toBe(bestSumOfSquares(free));
        },
      ),
    );
  });

  test('moves nothing once it is even, and no unit that is kept', () => {
    fc.assert(
      fc.property(announced, (processes) => {
        const spread = settled(processes);
        expect(settled(spread).map(({ owns }) => new Set(owns))).toEqual(spread.map(({ owns }) => new Set(owns)));
        for (const [index, { keeps }] of processes.entries())
          for (const unit of keeps) expect(spread[index]?.owns).toContain(unit);
      }),
    );
  });

  test('is the same for every process that reads the announcements, in any order', () => {
    fc.assert(
      fc.property(announced, fc.nat(), (processes, turn) => {
        const other = processes.map((_, index) => processes[(index + turn) % processes.length] as AnnouncedProcess);
        expect(new Map([...spreadUnits(other)].sort())).toEqual(new Map([...spreadUnits(processes)].sort()));
      }),
    );
  });

  test('the units of a process that is gone go to those that declare them', () => {
    fc.assert(
      fc.property(announced, (processes) => {
        const heirsOf = heirsAmong(processes);
        for (const gone of processes) {
          const others = processes.filter((one) => one !== gone);
          const heirs = heirsOf(gone);
          expect(new Set(heirs.keys())).toEqual(
            new Set(gone.owns.filter((unit) => others.some(({ declares }) => declares.includes(unit)))),
          );
          for (const [unit, heir] of heirs) expect(others.find(({ id }) => id === heir)?.declares).toContain(unit);
        }
      }),
    );
  });

  test('the units of a process that is gone go to the others in turns, beginning with the one that has the fewest', () => {
    const units = Array.from({ length: 7 }, (_, index) => `processor p${index}@1/0`);
    const [a = '', b = '', c = '', d = '', ...gone] = units;
    const process = (id: string, owns: readonly string[]) => ({ id, declares: units, owns, keeps: [] });
    const heirsOf = heirsAmong([process('1', [a, b]), process('2', [c]), process('3', [d]), process('gone', gone)]);
    expect([...heirsOf(process('gone', gone)).values()]).toEqual(['2', '3', '1']);
  });

  test('a new process receives its share from those that own most, one unit at a time', () => {
    const units = Array.from({ length: 9 }, (_, index) => `processor p${index}@1/0`);
    const one = { id: 'a', declares: units, owns: units, keeps: [] };
    const came = settled([one, { id: 'b', declares: units, owns: [], keeps: [] }]);
    expect(loadsOf(came)).toEqual([5, 4]);
    const third = settled([...came, { id: 'c', declares: units, owns: [], keeps: [] }]);
    expect(loadsOf(third)).toEqual([3, 3, 3]);
    const moved = third.flatMap(({ owns }, index) => owns.filter((unit) => !came[index]?.owns.includes(unit)));
    expect(moved).toHaveLength(3);
  });

  test('the partitions of a version go to different processes if that is as even', () => {
    const units = [0, 1, 2].flatMap((version) => [0, 1].map((partition) => `processor p${version}@1/${partition}`));
    const idle = (id: string) => ({ id, declares: units, owns: [], keeps: [] });
    for (const { owns } of settled([idle('a'), idle('b')])) {
      expect(new Set(owns.map((unit) => unit.slice(0, unit.lastIndexOf('/')))).size).toBe(3);
    }
    const all = { ...idle('a'), owns: units };
    for (const { owns } of settled([all, idle('b')])) {
      expect(new Set(owns.map((unit) => unit.slice(0, unit.lastIndexOf('/')))).size).toBe(3);
    }
  });
});
