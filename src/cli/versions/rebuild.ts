import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import { globalPosition } from '../../events/global-position.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { whoRebuilds } from '../../runtime/actions/rebuild-actions.ts';
import { readStatus, type VersionStatus } from '../../runtime/monitoring/status.ts';
import { acceptRebuild, cancelRebuild } from '../../runtime/rebuilds/rebuild.ts';
import { createRebuilds } from '../../runtime/rebuilds/rebuild-requests.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { lastReason } from '../../store/registry/transitions.ts';
import type { WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteRebuild } from '../remote/remote-rebuild.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { duration, integer, json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { reasonArgument } from '../shared/version-argument.ts';
import { snapshotArgument } from './snapshot.ts';

export const rebuild = defineCommand({
  meta: {
    name: 'rebuild',
    description:
      'Rebuild the table of a version, from the whole log or from a snapshot, while the old one serves; it takes over at the end.',
  },
  args: {
    version: {
      type: 'positional',
      description: 'Such as cart_summary@2',
      required: true,
    },
    'from-snapshot': {
      type: 'string',
      description: 'Start with its rows, fold only later events',
      valueHint: 'ID|latest',
    },
    'from-position': {
      type: 'string',
      description: 'Start with the newest snapshot at or below this position',
      valueHint: 'POSITION',
    },
    'in-place': {
      type: 'boolean',
      description: 'Rebuild the table itself, for disks without room for two; the version is not served meanwhile',
    },
    'accept-dead-letters': {
      type: 'boolean',
      description: 'Let a rebuild that waits because of new dead letters take over',
    },
    cancel: { type: 'boolean', description: 'Cancel a running rebuild' },
    wait: { type: 'boolean', description: 'Wait while another rebuild of the version runs, then request this one' },
    detach: { type: 'boolean', description: 'Request the rebuild and return at once' },
    json: { type: 'boolean', description: 'As JSON' },
    ...reasonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const from = startArgument(args['from-snapshot'], args['from-position']);
    const inPlace = args['in-place'] === true;
    const accept = args['accept-dead-letters'] === true;
    const wait = args.wait === true;
    if ((args.cancel || accept) && (from || inPlace || wait || (args.cancel && accept)))
      throw new RefoldError(
        'INVALID_CONFIG',
        `${accept ? '--accept-dead-letters' : '--cancel'} applies to the running rebuild; it can't be combined with other options.`,
      );
    if (isRemote(args)) {
      refuseOptions(args, 'wait');
      return remoteRebuild(args);
    }
    const config = await loadConfig(args.config);
    const projection = declaredVersion(config, args.version);
    const { id, name, version } = projection;
    const { readSchema } = config.database;
    await withOperation(config, async (operation) => {
      const { log } = operation;
      const db = await operation.dbOf(name, version);
      const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
      if (args.cancel) {
        await cancelRebuild(db, name, version, readSchema, step);
        console.log(args.json ? json({ version: id, cancelled: true }) : `The rebuild of ${id} is cancelled.`);
        return;
      }
      const onWait = (requestedBy: string) =>
        args.json || console.log(`${id} is being rebuilt, as ${requestedBy} asked for. Waiting for its end.`);
      const rebuilds = createRebuilds({ dbOf: () => db, log, readSchema, projections: config.projections, onWait });
      if (accept) await acceptRebuild(db, name, version, step);
      else await rebuilds.request(id, { ...step, inPlace, wait, ...(from === undefined ? {} : { from }) });
      if (!args.json && !accept) console.log(await whoRebuilds(db, id, { inPlace, isRequested: true }));
      const outcome = args.detach ? undefined : await follow(db, log, name, version, args.json === true);
      const otherCode = outcome !== undefined && (await builtByOtherCode(db, projection));
      if (args.json)
        console.log(
          json({
            version: id,
            asked: true,
            ...(outcome === undefined ? {} : { outcome }),
            ...(otherCode ? { otherCode } : {}),
          }),
        );
      else if (outcome !== undefined) console.log(`${id}: ${outcome}.`);
      if (otherCode && !args.json)
        console.log(
          `Warning: the process that rebuilt it has other code of ${id} than this application, so the rows come from that code. Deploy this code to every process that maintains ${id}, then rebuild again.`,
        );
    });
  }),
});

function startArgument(snapshot: string | undefined, position: string | undefined): WhichSnapshot | undefined {
  if (snapshot !== undefined && position !== undefined)
    throw new RefoldError('INVALID_CONFIG', 'Use --from-snapshot or --from-position, not both.');
  if (snapshot !== undefined) return snapshotArgument('--from-snapshot', snapshot);
  if (position === undefined) return undefined;
  if (!/^\d{1,15}$/.test(position))
    throw new RefoldError('INVALID_CONFIG', `--from-position is a position of the log, found '${position}'.`);
  return { upTo: globalPosition(position) };
}

/** Shows the progress until the rebuild has ended, and returns its outcome. Ctrl-C ends the display, not the rebuild. */
async function follow(db: Database, log: EventLog, name: string, version: number, quiet: boolean): Promise<string> {
  // Not `{eta}`: cli-progress has a value of its own for that.
  const format = '{bar} {percentage}% | {value} of {total} | {rate} | ETA {left}';
  const bar =
    process.stdout.isTTY && !quiet ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1, 0, { rate: '-', left: '?' });
  const since = performance.now();
  try {
    for (;;) {
      const status = (await readStatus(db, log)).find((one) => one.name === name && one.version === version);
      if (!status?.rebuild) break;
      if (status.rebuild.error) throw stopped(`${name}@${version}`, status.rebuild);
      const { heldReason } = status.rebuild;
      if (heldReason !== null)
        throw new RefoldError(
          'INVALID_TRANSITION',
          `The rebuild of ${name}@${version} does not take over: ${heldReason}`,
        );
      const { done, total } = progressOf(status.rebuild, status.head);
      const rate = done / Math.max(0.001, (performance.now() - since) / 1000);
      bar?.setTotal(total);
      bar?.update(done, {
        rate: `${integer(rate)}/s`,
        left: rate > 0 ? duration((total - done) / rate) : '?',
      });
      await pause(200);
    }
  } finally {
    bar?.stop();
  }
  return (await lastReason(db, name, version)) ?? 'the rebuild has ended';
}

/** The process that maintains the version rebuilds it. If a bug is fixed here but not there yet, the rebuild has the bug. */
async function builtByOtherCode(db: Database, { name, version, codeFingerprint }: Projection): Promise<boolean> {
  const found = await readVersion(db, { name, version });
  return found !== undefined && found.codeFingerprint !== codeFingerprint;
}

/** The progress in positions of the log, counted from the start of the rebuild. */
function progressOf(rebuild: NonNullable<VersionStatus['rebuild']>, head: bigint): { done: number; total: number } {
  return {
    done: Number(rebuild.checkpoint - rebuild.startedAtPosition),
    total: Math.max(1, Number(head - rebuild.startedAtPosition)),
  };
}

function stopped(id: string, { form, error }: NonNullable<VersionStatus['rebuild']>): RefoldError {
  const wayOut =
    form === 'beside'
      ? `The old table is still served; 'refold rebuild ${id} --cancel' ends the rebuild.`
      : `It continues from there when a process with fixed code maintains ${id}.`;
  return new RefoldError('EVOLVE_FAILED', `The rebuild has stopped: ${error?.message} ${wayOut}`);
}
