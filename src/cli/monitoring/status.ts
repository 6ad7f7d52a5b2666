import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import { stallText } from '../../runtime/monitoring/stall-text.ts';
import { readStatusOfStores, type VersionStatus } from '../../runtime/monitoring/status.ts';
import type { ReactorStatus } from '../../runtime/reactors/reactor-operations.ts';
import { type AnsweringVersion, answeringVersions } from '../../runtime/versions/answering-versions.ts';
import { canaryFiguresText, canaryText } from '../../runtime/versions/canary-steps.ts';
import { viewBehindText } from '../../runtime/versions/follow-views.ts';
import { missingIndexesText } from '../../runtime/versions/table-watch.ts';
import { readStalls, type Stall } from '../../store/log/horizon.ts';
import { type LiveProcess, readLiveProcesses } from '../../store/ownership/live-processes.ts';
import { type LostOwner, readLostOwners } from '../../store/ownership/processes.ts';
import { inEachStore } from '../../store/read-store.ts';
import { uncheckedText } from '../../store/registry/inline-versions.ts';
import { readViewsBehind } from '../../store/tables/views-behind.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteStatus } from '../remote/remote-status.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { duration, integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { storeAwayText, storeLines } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { reactorsToText } from './reactor-status.ts';
import { answersToText, processesToText } from './status-processes.ts';

// A process sends a heartbeat every second or so; on a busy machine it may be late.
const silentSeconds = 15;

// Long enough for a meaningful rate, short enough to wait for.
const sampleMilliseconds = 1000;

export const status = defineCommand({
  meta: {
    name: 'status',
    description:
      'Show every projection version (state, position, lag in events and in time, rate, ETA), every reactor, the version that answers for each read model, and every live process.',
  },
  args: {
    json: { type: 'boolean', description: 'As JSON' },
    watch: { type: 'boolean', description: 'Refresh until Ctrl-C', alias: 'w' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteStatus(args);
    }
    const config = await loadConfig(args.config);
    const { readSchema } = config.database;
    await withOperation(config, async ({ db, stores, log, reactors }) => {
      let { versions: before } = await readStatusOfStores(stores, log);
      do {
        const since = performance.now();
        await pause(sampleMilliseconds);
        const { versions: after, away } = await readStatusOfStores(stores, log);
        const versions = after.map((version) => withRate(version, before, (performance.now() - since) / 1000));
        // If the horizon stands still while the log grows, this shows who holds it.
        const stalls = (await readStalls(db)).filter((stall) => stall.seconds > 1);
        const processes = await readLiveProcesses(db);
        const report = {
          versions,
          storesAway: away,
          notRegistered: notRegistered(config, after, away),
          reactors: await reactors.status(),
          stalls,
          viewsBehind: await inEachStore(stores, async (store) =>
            (await readViewsBehind(store, readSchema)).map((view) => viewBehindText(readSchema, view)),
          ),
          lostOwners: await inEachStore(stores, (store) => readLostOwners(store, silentSeconds)),
          answers: answeringVersions(after, processes),
          processes,
        };
        if (args.watch && !args.json) console.clear();
        console.log(args.json ? toJson(report) : toText(report));
        before = after;
      } while (args.watch);
    });
  }),
});

// The first one decides how far the log can be read. A pool of writers may hold hundreds of positions.
const shownHolders = 3;

interface RatedStatus extends VersionStatus {
  /** Positions a second. */
  readonly rate: number;
  /** Seconds until it has caught up at this rate; null if it has, or if it does not move. */
  readonly eta: number | null;
  /** The pace of its rebuild; null if none is running. */
  readonly rebuildPace: Pace | null;
}

interface Pace {
  readonly rate: number;
  readonly eta: number | null;
}

function withRate(version: VersionStatus, before: readonly VersionStatus[], seconds: number): RatedStatus {
  const earlier = before.find((other) => other.name === version.name && other.version === version.version);
  const pace = paceOf(version.position, earlier?.position, version.head, seconds);
  const rebuildPace =
    version.rebuild && paceOf(version.rebuild.checkpoint, earlier?.rebuild?.checkpoint, version.head, seconds);
  return { ...version, ...pace, rebuildPace };
}

function paceOf(now: bigint, before: bigint | undefined, head: bigint, seconds: number): Pace {
  const rate = before === undefined ? 0 : Math.max(0, Number(now - before) / seconds);
  return { rate, eta: head > now && rate > 0 ? Number(head - now) / rate : null };
}

function paced(pace: Pace | null): string {
  if (!pace) return '';
  return ` (${integer(pace.rate)}/s${pace.eta === null ? '' : `, ETA ${duration(pace.eta)}`})`;
}

/** Declared versions that no process has registered yet. Of a store that does not respond, nothing is known. */
function notRegistered(config: Config, found: readonly VersionStatus[], away: readonly string[]): string[] {
  return config.projections
    .filter(({ name, version }) => !found.some((one) => one.name === name && one.version === version))
    .filter(({ store }) => !away.includes(store))
    .map(({ id }) => id);
}

interface Report {
  readonly versions: readonly RatedStatus[];
  /** The read stores that do not respond. */
  readonly storesAway: readonly string[];
  readonly notRegistered: readonly string[];
  readonly reactors: readonly ReactorStatus[];
  readonly stalls: readonly Stall[];
  /** What views show, and why. */
  readonly viewsBehind: readonly string[];
  readonly lostOwners: readonly LostOwner[];
  readonly answers: readonly AnsweringVersion[];
  readonly processes: readonly LiveProcess[];
}

function toJson(report: Report): string {
  return JSON.stringify(report, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2);
}

function toText(all: Report): string {
  const { versions: report, notRegistered: missing, storesAway, reactors, stalls, lostOwners } = all;
  const away = storesAway.map(storeAwayText);
  const unchecked = report.flatMap(uncheckedText);
  const none = report.length === 0 && missing.length === 0;
  const versions = none ? ['No projection version is registered yet.'] : [versionsToText(report, missing)];
  const reactions = reactors.length === 0 ? [] : ['', reactorsToText(reactors)];
  const more = stalls.length - shownHolders;
  const held = [
    ...stalls.slice(0, shownHolders).map(stallText),
    ...(more > 0 ? [`${integer(more)} more sessions hold positions above that; --json shows them.`] : []),
  ];
  const lost = lostOwners.map(
    ({ owner, units, seconds }) =>
      `${owner} owns ${integer(units)} of these and sent its last heartbeat ${seconds === null ? 'long' : duration(seconds)} ago: it was killed, or hangs. Another running process takes over; if there is none, start one.`,
  );
  const living = [...answersToText(all.answers), ...processesToText(all.processes)];
  return [...unchecked, ...away, ...versions, ...reactions, ...held, ...all.viewsBehind, ...lost, ...living].join('\n');
}

function partitionLines({ name, version, partitions }: RatedStatus): string[][] {
  if (partitions.length === 1) return [];
  return partitions.map(({ partition, processor, position, owner }) => [
    `  ${name}@${version}/${partition}`,
    '',
    processor,
    integer(position),
    '',
    '',
    '',
    '',
    owner ?? '-',
  ]);
}

function versionsToText(report: readonly RatedStatus[], missing: readonly string[]): string {
  const table = textTable(
    ['version', 'state', 'processor', 'position', 'lag', 'behind', 'events/s', 'ETA', 'owner'],
    report
      .flatMap((version) => [
        [
          `${version.name}@${version.version}`,
          stateOf(version),
          version.processor,
          integer(version.position),
          `${integer(version.lagEvents)}${version.lagEventsExact ? '' : '+'}`,
          version.lagSeconds === 0 ? '-' : duration(version.lagSeconds),
          integer(version.eventsPerSecond),
          version.lag === 0n || version.state === 'retired' ? '-' : version.eta === null ? '?' : duration(version.eta),
          version.partitions.length > 1 ? `${version.partitions.length} partitions` : (version.owner ?? '-'),
        ],
        ...partitionLines(version),
      ])
      .concat(missing.map((id) => [id, 'not registered', '-', '-', '-', '-', '-', '-', '-'])),
  );
  const notes = report.flatMap((version) => [
    ...storeLines({ ...version, id: `${version.name}@${version.version}` }),
    ...(version.paused
      ? [
          `${version.name}@${version.version} is paused since ${version.paused.since} by ${version.paused.by} (${version.paused.reason}): 'refold resume ${version.name}@${version.version}' resumes it`,
        ]
      : []),
    ...(version.startsAfter === null
      ? []
      : [
          `${version.name}@${version.version} is partial: it holds only events after position ${integer(version.startsAfter)}`,
        ]),
    ...(version.heldReason ? [`${version.name}@${version.version} is held: ${version.heldReason}`] : []),
    ...(version.canaryFigures
      ? [`${version.name}@${version.version} as a canary has ${canaryFiguresText(version.canaryFigures)}`]
      : []),
    ...differencesOf(version),
    ...(version.deadLetters > 0
      ? [
          `${version.name}@${version.version} has ${integer(version.deadLetters)} dead letters: 'refold dead-letters list ${version.name}@${version.version}'`,
        ]
      : []),
    ...(version.eventsSkipped > 0n
      ? [
          `${version.name}@${version.version} has skipped ${integer(version.eventsSkipped)} events: see 'onError' in its declaration, and the log for each`,
        ]
      : []),
    ...(version.retrying
      ? [
          `${version.name}@${version.version} tries position ${version.retrying.position} again at ${version.retrying.nextAt}, after ${integer(version.retrying.attempts)} failed attempts: ${version.retrying.message}`,
        ]
      : []),
    ...(version.rebuild
      ? [
          `${version.name}@${version.version} is being rebuilt${version.rebuild.form === 'in place' ? ' in place' : ''}${version.rebuild.snapshotId === null ? '' : ` from snapshot ${version.rebuild.snapshotId} at position ${integer(version.rebuild.startedAtPosition)}`}: at position ${integer(version.rebuild.checkpoint)} of ${integer(version.head)}${paced(version.rebuildPace)}, requested by ${version.rebuild.requestedBy} (${version.rebuild.reason})${version.rebuild.error ? `; stopped: ${version.rebuild.error.message}` : ''}${version.rebuild.heldReason ? `; does not take over: ${version.rebuild.heldReason}` : ''}`,
        ]
      : []),
    ...(version.missingIndexes.length > 0 ? [missingIndexesText(version)] : []),
    ...(version.error
      ? [`${version.name}@${version.version} stopped at ${version.error.at}: ${version.error.message}`]
      : []),
  ]);
  return [table, ...notes].join('\n');
}

function stateOf({ state, paused, heldReason, canary, inline, startsAfter }: VersionStatus): string {
  const notes = [
    ...(paused ? ['paused'] : []),
    ...(startsAfter === null ? [] : ['partial']),
    ...(heldReason ? ['held'] : []),
    ...(canary ? [`canary: ${canaryText(canary)}`] : []),
    ...(inline ? [`inline: ${inline}`] : []),
  ];
  return notes.length === 0 ? state : `${state} (${notes.join(', ')})`;
}

function differencesOf({ name, version, verification }: VersionStatus): string[] {
  if (!verification || verification.foundAt === null) return [];
  const keys = verification.samples.slice(0, 3).map(({ key, kind }) => `${key} ${kind}`);
  return [
    `${name}@${version} was found to differ from the log at ${verification.foundAt} (${keys.join('; ')}): 'refold verify ${name}@${version}' compares all rows, 'refold rebuild ${name}@${version}' rebuilds them.`,
  ];
}
