import { setTimeout as pause } from 'node:timers/promises';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import { duration, integer } from '../shared/format.ts';
import { type ActionArguments, runAction } from './remote-action.ts';
import { openRemote, type RemoteApi } from './remote-api.ts';
import { readSnapshots } from './remote-versions.ts';

export type RebuildArguments = ActionArguments & {
  readonly version: string;
  readonly cancel: boolean | undefined;
  readonly detach: boolean | undefined;
  readonly 'in-place': boolean | undefined;
  readonly 'accept-dead-letters': boolean | undefined;
  readonly 'from-snapshot': string | undefined;
  readonly 'from-position': string | undefined;
};

/** Requests, accepts or cancels a rebuild, and shows its progress unless `--detach` is given. */
export async function remoteRebuild(args: RebuildArguments): Promise<void> {
  const api = openRemote(args.remote);
  const { version } = args;
  const input = args.cancel
    ? { cancelRebuild: { version } }
    : args['accept-dead-letters']
      ? { acceptRebuild: { version } }
      : { rebuild: await rebuildInput(api, args) };
  const done = await runAction(api, args, input);
  const outcome = args.cancel || args.detach ? undefined : await follow(api, version, args.json === true);
  if (args.json) console.log(JSON.stringify({ ...done, ...(outcome === undefined ? {} : { outcome }) }, null, 2));
  else console.log(outcome === undefined ? done.summary : `${version}: ${outcome}.`);
}

async function rebuildInput(api: RemoteApi, args: RebuildArguments) {
  const fromSnapshot = args['from-snapshot'];
  return {
    version: args.version,
    inPlace: args['in-place'] === true,
    ...(fromSnapshot === undefined ? {} : { fromSnapshot: await snapshotOf(api, args.version, fromSnapshot) }),
    ...(args['from-position'] === undefined ? {} : { fromPosition: args['from-position'] }),
  };
}

/** The number of a snapshot; of the newest one for `latest`. @throws RefoldError `INVALID_CONFIG` */
export async function snapshotOf(api: RemoteApi, version: string, text: string): Promise<string> {
  if (/^\d{1,18}$/.test(text)) return text;
  if (text !== 'latest')
    throw new RefoldError('INVALID_CONFIG', `A snapshot is named by its number, or 'latest'; found '${text}'.`);
  const [found] = await readSnapshots(api, version);
  const [newest] = found?.snapshots ?? [];
  if (!newest) throw new RefoldError('INVALID_CONFIG', `${version} has no snapshot.`);
  return newest.id;
}

interface Rebuilding {
  readonly rebuild: {
    readonly progress: number;
    readonly eventsPerSecond: number;
    readonly etaSeconds: number | null;
    readonly heldReason: string | null;
    readonly error: { readonly message: string } | null;
  } | null;
  readonly history: { readonly items: readonly { readonly reason: string }[] };
}

const pollMs = 500;

/** Shows the progress until the rebuild has ended, and returns its outcome. Ctrl-C ends the display, not the rebuild. */
async function follow(api: RemoteApi, id: string, quiet: boolean): Promise<string> {
  const format = '{bar} {percentage}% | {rate} | ETA {left}';
  const bar =
    process.stdout.isTTY && !quiet ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1000, 0, { rate: '-', left: '?' });
  try {
    for (;;) {
      const { version } = await api.query<{ version: Rebuilding | null }>(
        `query Rebuild($id: ID!) {
          version(id: $id) {
            rebuild { progress eventsPerSecond etaSeconds heldReason error { message } }
            history(first: 1) { items { reason } }
          }
        }`,
        { id },
      );
      if (!version?.rebuild) return version?.history.items[0]?.reason ?? 'the rebuild has ended';
      const { progress, eventsPerSecond, etaSeconds, heldReason, error } = version.rebuild;
      if (error) throw new RefoldError('EVOLVE_FAILED', `The rebuild of ${id} has stopped: ${error.message}`);
      if (heldReason !== null)
        throw new RefoldError('INVALID_TRANSITION', `The rebuild of ${id} does not take over: ${heldReason}`);
      bar?.update(Math.floor(progress * 1000), {
        rate: `${integer(eventsPerSecond)}/s`,
        left: etaSeconds === null ? '?' : duration(etaSeconds),
      });
      await pause(pollMs);
    }
  } finally {
    bar?.stop();
  }
}
