import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { itemsOf, type OperatorApi } from '../api/operator-api.ts';
import { act, printOutcome, runAction } from '../api/run-action.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { bytes, integer, json } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';

const versionArgument = {
  version: { type: 'positional', description: 'Such as cart_summary@2', required: true },
} as const;

const take = defineCommand({
  meta: { name: 'take', description: "Copy a version's table with its position, without interrupting anything." },
  args: { ...versionArgument, ...jsonArgument, ...reasonArgument, ...apiArguments },
  run: withErrorReporting(({ args }) => act(args, { takeSnapshot: { version: args.version } })),
});

const list = defineCommand({
  meta: { name: 'list', description: 'Show the snapshots of a version, or of all versions.' },
  args: {
    version: { type: 'positional', description: 'Such as cart_summary@2', required: false },
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    if (args.version !== undefined) parseVersionId(args.version);
    const snapshots = await withApi(args, (api) => readSnapshots(api, args.version));
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
    ...apiArguments,
  },
  run: withErrorReporting(({ args }) =>
    withApi(args, async (api) => {
      const { version } = args;
      const snapshot = await snapshotNumber(api, version, '--snapshot', args.snapshot);
      printOutcome(args, await runAction(api, args, { restoreSnapshot: { version, snapshot } }));
    }),
  ),
});

const drop = defineCommand({
  meta: { name: 'drop', description: 'Drop a snapshot.' },
  args: {
    ...versionArgument,
    snapshot: { type: 'string', description: 'Its number', required: true, valueHint: 'ID' },
    ...jsonArgument,
    ...reasonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version, snapshot } = args;
    if (!isNumber(snapshot)) throw noNumber('--snapshot', snapshot);
    await act(args, { dropSnapshot: { version, snapshot } });
  }),
});

export const snapshot = defineCommand({
  meta: {
    name: 'snapshot',
    description: 'Take, list, restore or drop snapshots of read tables: what a rebuild can start from.',
  },
  subCommands: { take, list, restore, drop },
});

interface Snapshot {
  readonly id: string;
  readonly position: string;
  readonly rows: string;
  readonly bytes: string;
  readonly deadLetters: number;
  readonly isOfThisCode: boolean;
  readonly takenAt: string;
  readonly actor: string;
  readonly reason: string;
}

interface VersionSnapshots {
  readonly id: string;
  readonly snapshots: readonly Snapshot[];
}

const fields = 'id snapshots { id position rows bytes deadLetters isOfThisCode takenAt actor reason }';

/** The snapshots of all versions, or of one; the newest of a version first. */
async function readSnapshots(api: OperatorApi, id?: string): Promise<readonly (Snapshot & { version: string })[]> {
  const found =
    id === undefined
      ? (
          await itemsOf<VersionSnapshots>(
            api,
            `query Snapshots($after: String) { versions(after: $after) { items { ${fields} } next storesAway } }`,
          )
        ).items
      : [
          (
            await api.query<{ version: VersionSnapshots | null }>(
              `query Snapshots($id: ID!) { version(id: $id) { ${fields} } }`,
              { id },
            )
          ).version,
        ];
  return found.flatMap((one) => (one?.snapshots ?? []).map((snapshot) => ({ version: one?.id ?? '', ...snapshot })));
}

/** The number of a snapshot, that of the newest one for `latest`. @throws RefoldError `INVALID_CONFIG` */
export async function snapshotNumber(api: OperatorApi, version: string, option: string, text: string): Promise<string> {
  if (isNumber(text)) return text;
  if (text !== 'latest') throw noNumber(option, text);
  const [newest] = await readSnapshots(api, version);
  if (!newest) throw new RefoldError('INVALID_CONFIG', `${version} has no snapshot.`);
  return newest.id;
}

const isNumber = (text: string) => /^\d{1,18}$/.test(text);

function noNumber(option: string, text: string): RefoldError {
  return new RefoldError(
    'INVALID_CONFIG',
    `${option} is the number of a snapshot, found '${text}'. 'refold snapshot list' shows them.`,
  );
}

function toText(snapshots: Awaited<ReturnType<typeof readSnapshots>>): string {
  return textTable(
    ['version', 'snapshot', 'position', 'rows', 'size', 'dead letters', 'code', 'taken', 'by', 'reason'],
    snapshots.map((one) => [
      one.version,
      one.id,
      integer(BigInt(one.position)),
      integer(BigInt(one.rows)),
      bytes(BigInt(one.bytes)),
      integer(one.deadLetters),
      one.isOfThisCode ? 'this' : 'another',
      one.takenAt,
      one.actor,
      one.reason,
    ]),
  );
}
