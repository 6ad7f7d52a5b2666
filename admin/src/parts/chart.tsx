import type { LagAt } from '../server/overview.ts';
import { duration, number, percent } from './format.tsx';

/** A share of 1 as a bar with its number. */
export function Progress({ share, label }: { readonly share: number; readonly label: string }) {
  return (
    <span class="progress">
      <progress max={1} value={share} aria-label={label} />
      <span>{percent(share)}</span>
    </span>
  );
}

const width = 96;
const height = 22;

/** The trend of a lag as a small line. */
export function Spark({ points }: { readonly points: readonly LagAt[] }) {
  if (points.length < 2) return <span class="quiet-text">–</span>;
  const highest = Math.max(...points.map(({ lag }) => lag), 1);
  const path = line(points, width, height - 2, highest);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={trend(points)}>
      <path class="area" d={`${path}L${width} ${height}L0 ${height}z`} />
      <path class="line" d={path} />
    </svg>
  );
}

const chartWidth = 720;
const chartHeight = 150;

/** The trend of a lag with its scale. */
export function LagChart({ points }: { readonly points: readonly LagAt[] }) {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || points.length < 2) return <p class="empty">There is no trend yet.</p>;
  const highest = Math.max(...points.map(({ lag }) => lag), 1);
  const path = line(points, chartWidth, chartHeight - 2, highest);
  return (
    <figure class="chart">
      <span class="scale">{number(highest)}</span>
      <svg
        viewBox={`0 0 ${chartWidth} ${chartHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={trend(points)}
      >
        <path
          class="grid"
          d={`M0 1H${chartWidth}M0 ${chartHeight / 2}H${chartWidth}M0 ${chartHeight - 1}H${chartWidth}`}
        />
        <path class="area" d={`${path}L${chartWidth} ${chartHeight}L0 ${chartHeight}z`} />
        <path class="line" d={path} />
      </svg>
      <figcaption>
        <span>{duration((last.at - first.at) / 1000)} ago</span>
        <span>positions behind: {number(last.lag)} now</span>
      </figcaption>
    </figure>
  );
}

function line(points: readonly LagAt[], across: number, down: number, highest: number): string {
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1];
  const x = (at: number) => ((at - first) / Math.max(last - first, 1)) * across;
  const y = (lag: number) => 1 + down - (lag / highest) * down;
  return points
    .map(({ at, lag }, index) => `${index === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(lag).toFixed(1)}`)
    .join('');
}

function trend(points: readonly LagAt[]): string {
  const [first, last] = [points[0]?.lag ?? 0, points.at(-1)?.lag ?? 0];
  const direction = last > first ? 'rising' : last < first ? 'falling' : 'unchanged';
  return `Lag in positions, ${direction}: ${number(first)} at first, ${number(last)} now`;
}
