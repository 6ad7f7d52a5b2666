import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import {
  type DeadLetterOptions,
  discardDeadLetters,
  recallDiscarded,
  retryDeadLetters,
} from '../../runtime/dead-letters/dead-letters.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteDiscards, remoteLetters, remoteRecall, remoteRedeliver } from '../remote/remote-letters.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { type Operation, withOperation } from '../shared/open-operation.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';
import { expectReactor, isReactor, listDiscarded, listLetters } from './list-dead-letters.ts';
import { redeliverReactorLetters } from './reactor-dead-letters.ts';

const versionArgument = {
  version: { type: 'positional', description: 'A version, such as cart_summary@2, or a reactor', required: true },
} as const;
const keyArgument = {
  key: {
    type: 'string',
    description: 'One row only: its key, or a JSON array where it is composite. Of a reactor: one key, as listed',
    valueHint: 'KEY',
  },
} as const;

const list = defineCommand({
  meta: {
    name: 'list',
    description: 'Show the events that could not be folded or handled, and those that wait behind them.',
  },
  args: {
    version: {
      ...versionArgument.version,
      description: 'A version or a reactor. Default: all of them',
      required: false,
    },
    discarded: { type: 'boolean', description: 'Those that were discarded, instead' },
    json: { type: 'boolean', description: 'As JSON, with stacks' },
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return args.discarded ? remoteDiscards(args, args.version) : remoteLetters(args, args.version);
    }
    const config = await loadConfig(args.config);
    const list = args.discarded ? listDiscarded : listLetters;
    await withOperation(config, (operation) => list(config, operation, args));
  }),
});

const retry = defineCommand({
  meta: { name: 'retry', description: 'Fold or handle the dead letters again, in order, with the current code.' },
  args: {
    ...versionArgument,
    ...keyArgument,
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(({ args }) => redeliver(args, 'retry')),
});

const discard = defineCommand({
  meta: {
    name: 'discard',
    description: 'Discard the events that failed, and fold or handle those that waited behind them.',
  },
  args: {
    ...versionArgument,
    ...keyArgument,
    ...reasonArgument,
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(({ args }) => redeliver(args, 'discard')),
});

const recall = defineCommand({
  meta: { name: 'recall', description: 'Restore discarded events: the next rebuild folds them again.' },
  args: { ...versionArgument, ...keyArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteRecall({ ...args, json: false });
    }
    const config = await loadConfig(args.config);
    await withOperation(config, async (operation) => {
      const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
      const recalled = await recallDiscarded(await optionsOf(config, operation, args.version), step, args.key);
      console.log(`${args.version}: ${integer(recalled)} recalled. 'refold rebuild ${args.version}' folds them.`);
    });
  }),
});

export const deadLetters = defineCommand({
  meta: {
    name: 'dead-letters',
    description:
      "List, retry, discard or recall the events that a projection or a reactor with onError 'dead-letter' could not process, and the event that a projection stopped at.",
  },
  subCommands: { list, retry, discard, recall },
});

async function redeliver(
  args: {
    readonly version: string;
    readonly key: string | undefined;
    readonly reason: string | undefined;
    readonly json: boolean | undefined;
    readonly config: string | undefined;
    readonly remote: string | undefined;
  },
  what: 'retry' | 'discard',
): Promise<void> {
  if (isRemote(args)) {
    refuseOptions(args);
    return remoteRedeliver(args, what);
  }
  const config = await loadConfig(args.config);
  await withOperation(config, async (operation) => {
    if (isReactor(args.version)) {
      await expectReactor(config, operation, args.version);
      return redeliverReactorLetters(operation, args.version, what, args);
    }
    const work = what === 'retry' ? retryDeadLetters : discardDeadLetters;
    const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
    const outcome = await work(await optionsOf(config, operation, args.version), step, args.key);
    const { folded, discarded, left, continues = false } = outcome;
    // Nothing was done: a script must see a failure.
    const inVain = folded === 0 && discarded === 0 && !continues;
    if (inVain) process.exitCode = 1;
    if (args.json) return console.log(JSON.stringify(outcome));
    const done = inVain ? 'nothing could be folded' : `${integer(folded)} folded, ${integer(discarded)} discarded`;
    const why = left > 0 ? ` 'refold dead-letters list ${args.version}' shows why.` : '';
    const code = inVain ? ' They still fail with the code of this application.' : '';
    const goesOn = continues ? ' Its processor continues.' : '';
    console.log(`${args.version}: ${done}, ${integer(left)} left.${code}${why}${goesOn}`);
  });
}

async function optionsOf(config: Config, { dbOf, log }: Operation, id: string): Promise<DeadLetterOptions> {
  const projection = declaredVersion(config, id);
  return {
    db: await dbOf(projection.name, projection.version),
    log,
    readSchema: config.database.readSchema,
    projection,
  };
}
