import { expect, test } from 'vitest';
import { type Bound, judge, type Sample, type Series } from '../../soak/bounds.ts';
import { means, percentile, slopeOf } from '../../soak/slopes.ts';
import { seeded } from '../support/account-traffic.ts';

const minute = 60_000;
const megabyte = 1024 * 1024;

const bound: Bound = {
  figures: /^heap/,
  per: 'hour',
  most: 10 * megabyte,
  warmUpMinutes: 5,
  leastMinutes: 10,
  because: 'a test asks for it',
};

/** A figure every ten seconds. */
function series(minutes: number, value: (at: number) => number, name = 'heap'): Series {
  const samples = Array.from({ length: minutes * 6 }, (_, index): Sample => {
    const at = index * 10_000;
    return { at, events: index * 100, value: value(at) };
  });
  return { name, unit: 'bytes', samples };
}

const noise = (size: number) => {
  const random = seeded(7);
  return () => (random() - 0.5) * size;
};

test('a line through points has their rise, and an error that shows how far they scatter', () => {
  expect(slopeOf([0, 1, 2, 3].map((x) => ({ x, y: 5 + 2 * x })))).toEqual({
    points: 4,
    from: 0,
    to: 3,
    mean: 8,
    rise: 2,
    error: 0,
  });
  const scattered = slopeOf([1, 3, 2, 4].map((y, x) => ({ x, y })));
  expect(scattered?.rise).toBeCloseTo(0.8);
  expect(scattered?.error).toBeGreaterThan(0.5);
  expect(slopeOf([{ x: 1, y: 1 }])).toBeUndefined();
  expect(slopeOf([1, 2, 3].map((y) => ({ x: 1, y })))).toBeUndefined();
});

test('means of equal shares of the time keep the line and lose the swings', () => {
  const points = Array.from({ length: 100 }, (_, x) => ({ x, y: x + (x % 2 === 0 ? 10 : -10) }));
  const few = means(points, 10);
  expect(few).toHaveLength(10);
  expect(slopeOf(few)?.rise).toBeCloseTo(1);
  expect(slopeOf(few)?.error).toBeLessThan(slopeOf(points)?.error ?? 0);
});

test('a percentile is one of the figures', () => {
  expect(percentile([3, 1, 2], 0.5)).toBe(2);
  expect(percentile([3, 1, 2], 1)).toBe(3);
  expect(percentile([], 0.5)).toBeNaN();
});

test('a figure that rises faster than its bound grows; any other is within it', () => {
  const wobble = noise(2 * megabyte);
  const rising = (perHour: number) =>
    judge(
      series(40, (at) => 100 * megabyte + (perHour * at) / 60 / minute + wobble()),
      [bound],
    );
  expect(rising(100 * megabyte).verdict).toBe('grows');
  expect(rising(0).verdict).toBe('within');
});

test('figures from before the end of the warm-up do not count', () => {
  const filling = series(40, (at) => Math.min(at / minute, 5) * 50 * megabyte);
  expect(judge(filling, [bound]).verdict).toBe('within');
  expect(judge(filling, [{ ...bound, warmUpMinutes: 0 }]).verdict).toBe('grows');
});

test('a run that is too short, or a figure that swings too much, is not judged', () => {
  expect(
    judge(
      series(14, (at) => at * 1000),
      [bound],
    ).verdict,
  ).toBe('too short');
  const wild = noise(400 * megabyte);
  expect(
    judge(
      series(40, () => wild()),
      [bound],
    ).verdict,
  ).toBe('too uncertain');
  expect(
    judge(
      series(40, () => 1, 'without a bound'),
      [bound],
    ).verdict,
  ).toBe('not judged');
});

test('a figure that grows with the log by design is judged per event, and a latency relative to its mean', () => {
  const perEvent: Bound = { ...bound, per: 'event', most: 1, warmUpMinutes: 0 };
  const rows = (each: number) => series(40, (at) => (at / 10_000) * 100 * each);
  expect(judge(rows(1), [perEvent]).verdict).toBe('within');
  expect(judge(rows(3), [perEvent]).verdict).toBe('grows');
  const share: Bound = { ...bound, per: 'share', most: 0.5 };
  expect(
    judge(
      series(40, (at) => 10 + at / minute / 10),
      [share],
    ).verdict,
  ).toBe('within');
  expect(
    judge(
      series(40, (at) => 10 + at / minute),
      [share],
    ).verdict,
  ).toBe('grows');
});
