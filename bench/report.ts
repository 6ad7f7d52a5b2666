import { median, quantile } from './rounds.ts';
import type { Result } from './scenario.ts';

/** A line of the report, as `--json` writes it. */
export interface ReportLine {
  readonly scenario: string;
  readonly unit: string;
  readonly target: string;
  /** Medians. */
  readonly refold: number;
  readonly peer: number | null;
  readonly limit: number | null;
  readonly ratioToPeer: number | null;
  readonly ratioToLimit: number | null;
  /** Null if there is no target, or if the peer of the target is not installed. */
  readonly met: boolean | null;
}

export function reportLine(result: Result): ReportLine {
  const refold = median(result.refold);
  const peer = result.peer ? median(result.peer) : null;
  const limit = result.limit ? median(result.limit) : null;
  const ratioToPeer = peer === null ? null : refold / peer;
  const ratioToLimit = limit === null ? null : refold / limit;
  return {
    scenario: result.scenario,
    unit: result.unit,
    target: targetText(result),
    refold,
    peer,
    limit,
    ratioToPeer,
    ratioToLimit,
    met: isMet(result, refold, ratioToPeer, ratioToLimit),
  };
}

function isMet(
  { better, target }: Result,
  refold: number,
  ratioToPeer: number | null,
  ratioToLimit: number | null,
): boolean | null {
  if (Object.keys(target).length === 0) return null;
  const holds = (ratio: number | null, bound: number | undefined) => {
    if (bound === undefined) return true;
    if (ratio === null) return null;
    return better === 'more' ? ratio >= bound : ratio <= bound;
  };
  const verdicts = [
    holds(ratioToPeer, target.toPeer),
    holds(ratioToLimit, target.toLimit),
    target.atMost === undefined || refold <= target.atMost,
  ];
  return verdicts.includes(false) ? false : verdicts.includes(null) ? null : true;
}

function targetText({ better, target, unit, peerName, limitName }: Result): string {
  const sign = better === 'more' ? '≥' : '≤';
  const parts = [
    target.toLimit === undefined ? undefined : `${sign} ${target.toLimit} × ${limitName}`,
    target.toPeer === undefined ? undefined : `${sign} ${target.toPeer} × ${peerName}`,
    target.atMost === undefined ? undefined : `≤ ${target.atMost} ${unit}`,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

const headings = ['scenario', 'unit', 'Refold', 'limit', 'peer', '× limit', '× peer', 'target', 'met'];

export function screenTable(results: readonly Result[]): string {
  const rows = [headings, ...results.map(cells)];
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function markdownTable(results: readonly Result[]): string {
  const line = (row: readonly string[]) => `| ${row.join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...results.map((result) => line(cells(result)))].join('\n');
}

/** Each median with the lowest and highest round. A wide range makes the ratio less reliable. */
function cells(result: Result): string[] {
  const line = reportLine(result);
  const spread = (figures: readonly number[] | undefined) =>
    figures ? `${figure(median(figures))} (${figure(quantile(figures, 0))}–${figure(quantile(figures, 1))})` : '';
  const ratio = (value: number | null) => (value === null ? '' : value.toFixed(2));
  return [
    result.scenario,
    result.unit,
    spread(result.refold),
    spread(result.limit),
    spread(result.peer),
    ratio(line.ratioToLimit),
    ratio(line.ratioToPeer),
    line.target,
    line.met === null ? '' : line.met ? 'yes' : 'no',
  ];
}

function figure(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
