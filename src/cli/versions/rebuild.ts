import { setTimeout as pause } from 'node:timers/promises';
import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import type { OperatorApi } from '../api/operator-api.ts';
import { act, runAction } from '../api/run-action.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { duration, integer, json } from '../shared/format.ts';
import { jsonArgument, parseVersionId, reasonArgument } from '../shared/version-argument.ts';
import { snapshotNumber } from './snapshot.ts';

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
    ...jsonArgument,
    ...reasonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { version } = args;
    parseVersionId(version);
    const { 'from-snapshot': fromSnapshot, 'from-position': fromPosition, 'in-place': inPlace = false, wait } = args;
    const accept = args['accept-dead-letters'];
    if (fromSnapshot !== undefined && fromPosition !== undefined)
      throw new RefoldError('INVALID_CONFIG', 'Use --from-snapshot or --from-position, not both.');
    if (fromPosition !== undefined && !/^\d{1,15}$/.test(fromPosition))
      throw new RefoldError('INVALID_CONFIG', `--from-position is a position of the log, found '${fromPosition}'.`);
    if ((args.cancel || accept) && (fromSnapshot || fromPosition || inPlace || wait || (args.cancel && accept)))
      throw new RefoldError(
        'INVALID_CONFIG',
        `${accept ? '--accept-dead-letters' : '--cancel'} applies to the running rebuild; it can't be combined with other options.`,
      );
    if (args.cancel) return act(args, { cancelRebuild: { version } });
    await withApi(args, async (api) => {
      const say = (text: string) => args.json || console.log(text);
      const snapshot =
        fromSnapshot === undefined ? undefined : await snapshotNumber(api, version, '--from-snapshot', fromSnapshot);
      const input = { version, inPlace, fromSnapshot: snapshot, fromPosition };
      const action = accept ? { acceptRebuild: { version } } : { rebuild: input };
      const request = () => runAction(api, args, action);
      const done = await (wait ? whenNoneRuns(api, version, say, request) : request());
      say(done.summary);
      const ended = args.detach ? undefined : await follow(api, version, args.json === true);
      if (args.json) return console.log(json({ ...done, ...ended }));
      if (ended === undefined) return;
      say(`${version}: ${ended.outcome}.`);
      if (ended.otherCode)
        say(
          `Warning: the process that rebuilt it has other code of ${version} than this application, so the rows come from that code. Deploy this code to every process that maintains ${version}, then rebuild again.`,
        );
    });
  }),
});

interface Rebuilding {
  readonly builtByThisCode: boolean | null;
  readonly rebuild: {
    readonly form: string;
    readonly requestedBy: string;
    readonly progress: number;
    readonly eventsPerSecond: number;
    readonly etaSeconds: number | null;
    readonly heldReason: string | null;
    readonly error: { readonly message: string } | null;
  } | null;
  readonly history: { readonly items: readonly { readonly reason: string }[] };
}

const query = `query Rebuild($id: ID!) {
  version(id: $id) {
    builtByThisCode
    rebuild { form requestedBy progress eventsPerSecond etaSeconds heldReason error { message } }
    history(first: 1) { items { reason } }
  }
}`;

// The overview that the API reads it from is not newer.
const pollMs = 250;

async function readRebuild(api: OperatorApi, id: string): Promise<Rebuilding | null> {
  return (await api.query<{ version: Rebuilding | null }>(query, { id })).version;
}

// Another waiting command may be faster, and its rebuild may have ended when this one looks again.
const mostRefusals = 10;

/** Requests a rebuild as soon as no other one runs. */
async function whenNoneRuns<T>(
  api: OperatorApi,
  id: string,
  say: (text: string) => void,
  request: () => Promise<T>,
): Promise<T> {
  for (let [isSaid, refusals] = [false, 0]; ; ) {
    const running = (await readRebuild(api, id))?.rebuild;
    if (running) {
      if (!isSaid) say(`${id} is being rebuilt, as ${running.requestedBy} asked for. Waiting for its end.`);
      isSaid = true;
      await pause(pollMs);
      continue;
    }
    try {
      return await request();
    } catch (error) {
      if (++refusals > mostRefusals && !(await readRebuild(api, id))?.rebuild) throw error;
    }
  }
}

/** Shows the progress until the rebuild has ended, and returns its outcome. Ctrl-C ends the display, not the rebuild. */
async function follow(
  api: OperatorApi,
  id: string,
  quiet: boolean,
): Promise<{ readonly outcome: string; readonly otherCode: boolean }> {
  const format = '{bar} {percentage}% | {rate} | ETA {left}';
  const isShown = process.stdout.isTTY && !quiet;
  const bar = isShown ? new SingleBar({ format, hideCursor: true }, Presets.shades_classic) : undefined;
  bar?.start(1000, 0, { rate: '-', left: '?' });
  try {
    for (;;) {
      const version = await readRebuild(api, id);
      if (!version?.rebuild)
        return {
          outcome: version?.history.items[0]?.reason ?? 'the rebuild has ended',
          otherCode: version?.builtByThisCode === false,
        };
      const { progress, eventsPerSecond, etaSeconds, heldReason, error } = version.rebuild;
      if (error) throw stopped(id, version.rebuild.form, error.message);
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

function stopped(id: string, form: string, message: string): RefoldError {
  const wayOut =
    form === 'beside'
      ? `The old table is still served; 'refold rebuild ${id} --cancel' ends the rebuild.`
      : `It continues from there when a process with fixed code maintains ${id}.`;
  return new RefoldError('EVOLVE_FAILED', `The rebuild has stopped: ${message} ${wayOut}`);
}
