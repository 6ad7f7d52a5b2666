import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { restoreSnapshot } from '../../runtime/rebuilds/rebuild-in-place.ts';
import { dropSnapshot, listSnapshots, takeSnapshot } from '../../runtime/rebuilds/table-snapshots.ts';
import type { TableSnapshot, WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { act } from '../remote/remote-action.ts';
import { openRemote } from '../remote/remote-api.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { snapshotOf } from '../remote/remote-rebuild.ts';
import { remoteSnapshots } from '../remote/remote-versions.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { bytes, integer, json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { listOfStores } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

const versionArgument = {
  version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
} as const;

const take = defineCommand({
  meta: { name: 'take', description: "Copy a version's table with its position, without interrupting anything." },
  args: { ...versionArgument, ...jsonArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return act(args, { takeSnapshot: { version: args.version } });
    }
    const config = await loadConfig(args.config);
    const { name, version } = parseVersionId(args.version);
    const { readSchema } = config.database;
    const snapshot = await withOperation(config, async ({ dbOf, actor }) =>
      takeSnapshot(
        { db: await dbOf(name, version), readSchema, name, version },
        { actor, reason: args.reason ?? 'by hand' },
      ),
    );
    console.log(args.json ? json(snapshot) : `${args.version}: ${described(snapshot)}.`);
  }),
});

const list = defineCommand({
  meta: { name: 'list', description: 'Show the snapshots of a version, or of all versions.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: false },
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteSnapshots(args, args.version);
    }
    const config = await loadConfig(args.config);
    const wanted = args.version === undefined ? undefined : parseVersionId(args.version);
    const snapshots = await withOperation(config, ({ stores }) =>
      listOfStores(stores, ({ db }) => listSnapshots(db, wanted?.name, wanted?.version)),
    );
    if (args.json) console.log(json(snapshots));
    else console.log(snapshots.length === 0 ? 'There are no snapshots.' : toText(snapshots));
  }),
});

const restore = defineCommand({
  meta: {
    name: 'restore',
    description: 'Serve the rows of a snapshot at once, as they were then, and catch up from there.',
  },
  args: {
    ...versionArgument,
    snapshot: { type: 'string', description: 'Its number, or latest', default: 'latest', valueHint: 'ID' },
    ...jsonArgument,
    ...reasonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      const { version } = args;
      return act(args, {
        restoreSnapshot: { version, snapshot: await snapshotOf(openRemote(args.remote), version, args.snapshot) },
      });
    }
    const config = await loadConfig(args.config);
    const projection = declaredVersion(config, args.version);
    const which = snapshotArgument('--snapshot', args.snapshot);
    const { readSchema } = config.database;
    const snapshot = await withOperation(config, async ({ dbOf, log, actor }) =>
      restoreSnapshot(
        { db: await dbOf(projection.name, projection.version), log, readSchema, projection },
        { actor, reason: args.reason ?? 'by hand' },
        which,
      ),
    );
    const done = `${projection.id} serves ${described(snapshot)}, and catches up from there.`;
    console.log(args.json ? json(snapshot) : done);
  }),
});

const drop = defineCommand({
  meta: { name: 'drop', description: 'Drop a snapshot.' },
  args: {
    ...versionArgument,
    snapshot: { type: 'string', description: 'Its number', required: true, valueHint: 'ID' },
    ...reasonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const { name, version } = parseVersionId(args.version);
    const id = snapshotNumber('--snapshot', args.snapshot);
    if (isRemote(args)) {
      refuseOptions(args);
      return act({ ...args, json: false }, { dropSnapshot: { version: args.version, snapshot: String(id) } });
    }
    const config = await loadConfig(args.config);
    const step = { reason: args.reason ?? 'by hand' };
    await withOperation(config, async ({ dbOf, actor }) =>
      dropSnapshot(await dbOf(name, version), name, version, id, { actor, ...step }),
    );
    console.log(`${args.version}: snapshot ${id} is dropped.`);
  }),
});

export const snapshot = defineCommand({
  meta: {
    name: 'snapshot',
    description: 'Take, list, restore or drop snapshots of read tables: what a rebuild can start from.',
  },
  subCommands: { take, list, restore, drop },
});

/** Parses `latest` or a number. @throws RefoldError `INVALID_CONFIG` */
export function snapshotArgument(option: string, text: string): WhichSnapshot {
  return text === 'latest' ? 'latest' : { id: snapshotNumber(option, text) };
}

function snapshotNumber(option: string, text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new RefoldError(
    'INVALID_CONFIG',
    `${option} is the number of a snapshot, found '${text}'. 'refold snapshot list' shows them.`,
  );
}

function described({ id, checkpoint, rows, bytes: size, deadLetters }: TableSnapshot): string {
  const letters = deadLetters > 0 ? `, ${integer(deadLetters)} dead letters` : '';
  return `snapshot ${id} at position ${integer(checkpoint)} (${integer(rows)} rows, ${bytes(size)}${letters})`;
}

function toText(snapshots: readonly TableSnapshot[]): string {
  return textTable(
    ['version', 'snapshot', 'position', 'rows', 'size', 'dead letters', 'code', 'taken', 'by', 'reason'],
    snapshots.map((one) => [
      `${one.name}@${one.version}`,
      String(one.id),
      integer(one.checkpoint),
      integer(one.rows),
      bytes(one.bytes),
      integer(one.deadLetters),
      one.codeFingerprint.slice(0, 8),
      one.takenAt,
      one.actor,
      one.reason,
    ]),
  );
}
