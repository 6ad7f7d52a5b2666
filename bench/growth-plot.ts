import { median } from './rounds.ts';
import type { Result } from './scenario.ts';

const width = 760;
const height = 380;
const [left, right, top, bottom] = [60, 190, 20, 50];
const colours = ['#2a7', '#c63', '#36c', '#a3a', '#888', '#c33'];
const most = 4;

/** The cost of each measure by the length of the log, relative to the shortest log. Both scales are logarithmic. Undefined without results. */
export function growthPlot(results: readonly Result[]): string | undefined {
  const points = results.flatMap(({ growth, refold }) => (growth ? [{ ...growth, cost: median(refold) }] : []));
  if (points.length === 0) return undefined;
  const sizes = [...new Set(points.map(({ events }) => events))].sort((a, b) => a - b);
  const [least = 1, largest = 1] = [sizes[0], sizes.at(-1)];
  const x = (events: number) =>
    left + (Math.log(events / least) / Math.max(1, Math.log(largest / least))) * (width - left - right);
  const y = (ratio: number) =>
    top + ((1 - Math.log(Math.min(most, Math.max(1 / most, ratio))) / Math.log(most)) / 2) * (height - top - bottom);
  const lines = [...new Set(points.map(({ measure }) => measure))].map((measure, index) => {
    const own = points.filter((point) => point.measure === measure).sort((a, b) => a.events - b.events);
    const base = own[0]?.cost ?? 1;
    const colour = colours[index % colours.length];
    const path = own.map(({ events, cost }) => `${x(events).toFixed(1)},${y(cost / base).toFixed(1)}`).join(' ');
    const last = own.at(-1);
    const label = `${measure} ${((last?.cost ?? 0) / base).toFixed(2)}`;
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/><line x1="${width - right + 10}" x2="${width - right + 24}" y1="${top + 20 + index * 20}" y2="${top + 20 + index * 20}" stroke="${colour}" stroke-width="2"/><text x="${width - right + 30}" y="${top + 24 + index * 20}">${label}</text>`;
  });
  const grid = [0.25, 0.5, 1, 1.3, 2, 4].map(
    (ratio) =>
      `<line x1="${left}" x2="${width - right}" y1="${y(ratio)}" y2="${y(ratio)}" stroke="${ratio === 1.3 ? '#c33' : '#ccc'}"${ratio === 1.3 ? ' stroke-dasharray="4 3"' : ''}/><text x="${left - 6}" y="${y(ratio) + 4}" text-anchor="end">${ratio}</text>`,
  );
  const axis = sizes.map(
    (events) =>
      `<text x="${x(events)}" y="${height - bottom + 20}" text-anchor="middle">${events.toLocaleString('en')}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">
<title>Cost of operations by the length of the log</title>
<rect width="100%" height="100%" fill="white"/>
${[...grid, ...lines, ...axis].join('\n')}
<text x="${(width - right + left) / 2}" y="${height - 10}" text-anchor="middle">events in the log; cost by that of the shortest</text>
</svg>
`;
}
