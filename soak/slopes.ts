/** A figure at a time, or at the value that it is compared with. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Slope {
  readonly points: number;
  /** The smallest and the largest x. */
  readonly from: number;
  readonly to: number;
  readonly mean: number;
  /** How much y rises as x rises by 1. */
  readonly rise: number;
  /** Twice the standard error of the rise. If the deviations were independent, the rise would be within `rise` ± `error` in 95 of 100 cases. */
  readonly error: number;
}

/** The least-squares line through the points; undefined for fewer than three points, or if all have the same x. */
export function slopeOf(points: readonly Point[]): Slope | undefined {
  const n = points.length;
  if (n < 3) return undefined;
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / n;
  const mean = points.reduce((sum, { y }) => sum + y, 0) / n;
  let [xx, xy] = [0, 0];
  for (const { x, y } of points) {
    xx += (x - meanX) ** 2;
    xy += (x - meanX) * (y - mean);
  }
  if (xx === 0) return undefined;
  const rise = xy / xx;
  const rest = points.reduce((sum, { x, y }) => sum + (y - mean - rise * (x - meanX)) ** 2, 0);
  const xs = points.map(({ x }) => x);
  return {
    points: n,
    from: Math.min(...xs),
    to: Math.max(...xs),
    mean,
    rise,
    error: 2 * Math.sqrt(rest / (n - 2) / xx),
  };
}

/** Neighbouring figures depend on each other, and garbage collections make many figures swing. Means over equal shares of x depend much less. */
export function means(points: readonly Point[], shares: number): Point[] {
  const xs = points.map(({ x }) => x);
  const [from, to] = [Math.min(...xs), Math.max(...xs)];
  const groups = Map.groupBy(points, ({ x }) =>
    Math.min(shares - 1, Math.floor(((x - from) / (to - from || 1)) * shares)),
  );
  return [...groups.values()].map((group) => ({
    x: group.reduce((sum, { x }) => sum + x, 0) / group.length,
    y: group.reduce((sum, { y }) => sum + y, 0) / group.length,
  }));
}

/** The figure below which this share of all figures lies; they may be in any order. */
export function percentile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
