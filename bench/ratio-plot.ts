import { reportLine } from './report.ts';
import type { Result } from './scenario.ts';

const barHeight = 22;
const labelWidth = 230;
const plotWidth = 560;

/** One bar per measure: its ratio to its limit on a logarithmic scale, with a line at 1. Right of the line is better. */
export function ratioPlot(results: readonly Result[]): string {
  const bars = results.flatMap((result) => {
    const { ratioToLimit, scenario, met } = reportLine(result);
    if (ratioToLimit === null || !(ratioToLimit > 0)) return [];
    return [{ scenario, met, ratio: result.better === 'more' ? ratioToLimit : 1 / ratioToLimit }];
  });
  const height = bars.length * barHeight + 40;
  const place = (ratio: number) => labelWidth + ((Math.log10(Math.min(10, Math.max(0.1, ratio))) + 1) / 2) * plotWidth;
  const lines = bars.map(({ scenario, met, ratio }, index) => {
    const y = index * barHeight + 10;
    const [left, right] = [Math.min(place(1), place(ratio)), Math.max(place(1), place(ratio))];
    const colour = met === null ? '#888' : met ? '#2a7' : '#c63';
    return `<text x="${labelWidth - 8}" y="${y + 14}" text-anchor="end">${scenario}</text><rect x="${left}" y="${y + 3}" width="${right - left}" height="14" fill="${colour}"/><text x="${right + 4}" y="${y + 14}">${ratio.toFixed(2)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${labelWidth + plotWidth + 60}" height="${height}" font-family="sans-serif" font-size="12">
<title>Refold beside its limits and peers, as ratios</title>
<rect width="100%" height="100%" fill="white"/>
${lines.join('\n')}
<line x1="${place(1)}" y1="4" x2="${place(1)}" y2="${height - 26}" stroke="black"/>
<text x="${place(1)}" y="${height - 10}" text-anchor="middle">as good as the limit</text>
</svg>
`;
}
