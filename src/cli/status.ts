import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { readStatus, type VersionStatus } from '../runtime/status.ts';
import { readStalls, type Stall } from '../store/horizon.ts';
import { telling } from './exit-with-error.ts';
import { duration, integer } from './format.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { withOperation } from './open-operation.ts';
import { textTable } from './text-table.ts';

// Long enough for a rate that means something, short enough to wait for.
const sampleMilliseconds = 1000;

export const status = defineCommand({
  meta: {
    name: 'status',
    description: 'Show every projection version: state, position, lag, rate and when it will have caught up.',
  },
  args: {
    json: { type: 'boolean', description: 'As JSON' },
    watch: { type: 'boolean', description: 'Again and again, until Ctrl-C', alias: 'w' },
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    await withOperation(await loadConfig(args.config), async ({ db, log }) => {
      let before = await readStatus(db, log);
      do {
        const since = Date.now();
        await pause(sampleMilliseconds);
        const after = await readStatus(db, log);
        const report = after.map((version) => withRate(version, before, (Date.now() - since) / 1000));
        // A horizon that stands still while the log grows names who holds it.
        const stalls = (await readStalls(db)).filter((stall) => stall.seconds > 1);
        if (args.watch && !args.json) console.clear();
        console.log(args.json ? toJson(report, stalls) : toText(report, stalls));
        before = after;
      } while (args.watch);
    });
  }),
});

interface RatedStatus extends VersionStatus {
  /** Positions a second. */
  readonly rate: number;
  /** Seconds until it has caught up at this rate; null where it has, or does not move. */
  readonly eta: number | null;
}

function withRate(version: VersionStatus, before: readonly VersionStatus[], seconds: number): RatedStatus {
  const earlier = before.find((other) => other.name === version.name && other.version === version.version);
  const rate = earlier ? Math.max(0, Number(version.position - earlier.position) / seconds) : 0;
  return { ...version, rate, eta: version.lag > 0n && rate > 0 ? Number(version.lag) / rate : null };
}

function toJson(report: readonly RatedStatus[], stalls: readonly Stall[]): string {
  return JSON.stringify(
    { versions: report, stalls },
    (_, value) => (typeof value === 'bigint' ? value.toString() : value),
    2,
  );
}

function toText(report: readonly RatedStatus[], stalls: readonly Stall[]): string {
  if (report.length === 0) return 'No projection version is registered yet.';
  const table = textTable(
    ['version', 'state', 'processor', 'position', 'lag', 'rate', 'ETA', 'owner'],
    report.map((version) => [
      `${version.name}@${version.version}`,
      version.heldReason ? `${version.state} (held)` : version.state,
      version.processor,
      integer(version.position),
      integer(version.lag),
      `${integer(version.rate)}/s`,
      version.lag === 0n ? '-' : version.eta === null ? '?' : duration(version.eta),
      version.owner ?? '-',
    ]),
  );
  const notes = report.flatMap((version) => [
    ...(version.heldReason ? [`${version.name}@${version.version} is held: ${version.heldReason}`] : []),
    ...(version.deadLetters > 0
      ? [
          `${version.name}@${version.version} has ${integer(version.deadLetters)} dead letters: 'refold dead-letters list ${version.name}@${version.version}'`,
        ]
      : []),
    ...(version.rebuild
      ? [
          `${version.name}@${version.version} is being rebuilt: at position ${integer(version.rebuild.checkpoint)} of ${integer(version.head)}, asked for by ${version.rebuild.requestedBy} (${version.rebuild.reason})${version.rebuild.error ? `; stopped: ${version.rebuild.error.message}` : ''}`,
        ]
      : []),
    ...(version.error
      ? [`${version.name}@${version.version} stopped at ${version.error.at}: ${version.error.message}`]
      : []),
  ]);
  const held = stalls.map(
    (stall) =>
      `The log can't be read past position ${stall.tag}: '${stall.applicationName}' (pid ${stall.pid ?? '-'}) has been appending for ${duration(stall.seconds)}, ${stall.state}: ${stall.query ?? '?'}`,
  );
  return [table, ...notes, ...held].join('\n');
}
