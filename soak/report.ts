import { bounds, judge, type Series, type Verdict } from './bounds.ts';
import type { ClientRecord } from './client-record.ts';
import { percentile } from './slopes.ts';

type Say = (line: string) => void;

/** Prints every figure with its slope and its bound; returns those that grow faster than their bound. */
export function reportFigures(title: string, series: readonly Series[], say: Say): readonly Verdict[] {
  const verdicts = series.map((one) => judge(one));
  say(`\n${title}`);
  say(row(['figure', 'first', 'last', 'slope', '±', 'at most', 'verdict']));
  for (const verdict of verdicts.toSorted((a, b) => (a.series.name < b.series.name ? -1 : 1)))
    if (verdict.series.samples.some(({ value }) => value !== 0)) say(row(cells(verdict)));
  const unjudged = verdicts.filter(({ verdict }) => verdict !== 'within' && verdict !== 'grows').length;
  say(
    `${verdicts.length} figures: ${count('within')} within their bounds, ${count('grows')} grow, ${unjudged} were not judged (the run is too short for them, or they vary too much).`,
  );
  return verdicts.filter(({ verdict }) => verdict === 'grows');

  function count(word: Verdict['verdict']): number {
    return verdicts.filter(({ verdict }) => verdict === word).length;
  }
}

export function reportBounds(say: Say): void {
  say('\nbounds');
  for (const { figures, per, most, warmUpMinutes, leastMinutes, because } of bounds) {
    const measure = per === 'share' ? `${most * 100} % an hour` : `${amount(most)} an ${per}`;
    say(
      `  ${figures.source.padEnd(60)} ${measure}; after ${warmUpMinutes} min, judged over ${leastMinutes} or more: ${because}`,
    );
  }
}

export function reportClients(record: ClientRecord, say: Say): void {
  say('\nclients');
  say(
    `  ${'operation'.padEnd(26)}${['times', 'p50 ms', 'p99 ms', 'longest'].map((head) => head.padStart(10)).join('')}`,
  );
  for (const [kind, all] of [...record.latencies].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const times = all.map(({ milliseconds }) => milliseconds);
    const figures = [times.length, ...[0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(1))];
    say(`  ${kind.padEnd(26)}${figures.map((figure) => String(figure).padStart(10)).join('')}`);
  }
  for (const [what, times] of record.events) say(`  ${times} × ${what}`);
  for (const [name, { times, first }] of record.failures) say(`  FAILED ${times} × ${name}\n    ${first}`);
  for (const sentence of record.wrong) say(`  WRONG ${sentence}`);
  if (record.failures.size === 0 && record.wrong.length === 0) say('  no request failed, no response was wrong');
}

function cells({ series, bound, slope, most, verdict }: Verdict): readonly string[] {
  const bytes = series.unit.startsWith('bytes');
  const shown = (value: number) => (bytes ? inBytes(value) : amount(value));
  const per = bound?.per === 'event' ? '/event' : '/h';
  const ends = [series.samples[0], series.samples.at(-1)].map((sample) => (sample ? shown(sample.value) : '-'));
  if (!slope) return [series.name, ...ends, '-', '-', '-', verdict];
  return [
    series.name,
    ...ends,
    shown(slope.rise) + per,
    shown(slope.error),
    shown(most),
    verdict === 'grows' ? 'GROWS' : verdict,
  ];
}

const widths = [50, 12, 12, 16, 12, 12];

function row(columns: readonly string[]): string {
  return `  ${columns.map((column, index) => (index === 0 ? column.padEnd(widths[0] ?? 0) : `${column.padStart(widths[index] ?? 0)} `)).join('')}`;
}

function inBytes(value: number): string {
  const size = Math.abs(value);
  if (size >= 1024 * 1024) return `${(value / 1024 / 1024).toFixed(1)} MB`;
  return size >= 1024 ? `${(value / 1024).toFixed(1)} kB` : `${value.toFixed(0)} B`;
}

function amount(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}
