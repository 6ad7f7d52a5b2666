import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { ReactorOperations } from '../../runtime/reactors/reactor-operations.ts';
import type { TransitionReason } from '../../runtime/versions/expect-version.ts';
import { reasonOf } from '../../thrown.ts';
import { reactorsToText, waitingToText } from '../monitoring/reactor-status.ts';
import { act, type RemoteAction } from '../remote/remote-action.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteReactor, remoteReactors } from '../remote/remote-reactors.ts';
import { remoteHistory } from '../remote/remote-versions.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';

const nameArgument = {
  name: { type: 'positional', description: 'Such as confirmation_mails', required: true },
} as const;
const positionArgument = {
  position: { type: 'positional', description: 'A position of the log, such as 1042', required: true },
} as const;

const list = defineCommand({
  meta: { name: 'list', description: 'Show every reactor: state, position, lag, what it has handled, its owner.' },
  args: { ...jsonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteReactors(args);
    }
    await withOperation(await loadConfig(args.config), async ({ reactors }) => {
      const found = await reactors.status();
      if (args.json) console.log(toJson(found));
      else console.log(found.length === 0 ? 'No reactor is registered yet.' : reactorsToText(found));
    });
  }),
});

const show = defineCommand({
  meta: { name: 'show', description: 'Show a reactor, and the events whose handlers wait, for what and until when.' },
  args: { ...nameArgument, ...jsonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteReactor(args, args.name);
    }
    await withOperation(await loadConfig(args.config), async ({ reactors }) => {
      const status = (await reactors.status()).find(({ name }) => name === args.name);
      if (!status)
        throw new RefoldError(
          'INVALID_CONFIG',
          `There is no reactor '${args.name}'; 'refold reactor list' shows them.`,
        );
      const waiting = await reactors.waiting(args.name);
      if (args.json) console.log(toJson({ ...status, waitingEvents: waiting }));
      else console.log([reactorsToText([status]), '', waitingToText(waiting, status.waiting)].join('\n'));
    });
  }),
});

const history = defineCommand({
  meta: { name: 'history', description: 'Show what operators did to a reactor: who, when and why; the latest first.' },
  args: { ...nameArgument, ...jsonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(async ({ args }) => {
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteHistory(args, { reactor: args.name }, 1000);
    }
    await withOperation(await loadConfig(args.config), async ({ reactors }) => {
      const operations = await reactors.history(args.name);
      if (args.json) console.log(toJson(operations));
      else
        console.log(
          textTable(
            ['at', 'operation', 'from', 'to', 'who', 'why'],
            operations.map(({ at, operation, from, to, actor, reason }) => [
              at,
              operation,
              from === null ? '-' : integer(from),
              integer(to),
              actor,
              reason,
            ]),
          ),
        );
    });
  }),
});

const pause = defineCommand({
  meta: { name: 'pause', description: 'Pause a reactor until it is resumed, also across restarts.' },
  args: { ...nameArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ pauseReactor: { reactor: args.name } }),
      async (reactors, step) => {
        await reactors.pause(args.name, step);
        return `${args.name} is paused; 'refold reactor resume ${args.name}' resumes it.`;
      },
    ),
  ),
});

const resume = defineCommand({
  meta: { name: 'resume', description: 'Resume a reactor that was paused, or that stopped at an error.' },
  args: { ...nameArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ resumeReactor: { reactor: args.name } }),
      async (reactors, step) => {
        await reactors.resume(args.name, step);
        return `${args.name} is resumed.`;
      },
    ),
  ),
});

const rewind = defineCommand({
  meta: {
    name: 'rewind',
    description: 'Rewind a reactor: it handles all events after the position again, with the same message ids.',
  },
  args: { ...nameArgument, ...positionArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ rewindReactor: { reactor: args.name, position: positionOf(args.position).toString() } }),
      async (reactors, step) => {
        const position = positionOf(args.position);
        await reactors.rewind(args.name, position, step);
        return `${args.name} continues after position ${integer(position)}: later events are handled again.`;
      },
    ),
  ),
});

const skip = defineCommand({
  meta: { name: 'skip', description: 'Have a reactor skip all events up to and including the position.' },
  args: { ...nameArgument, ...positionArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ skipReactor: { reactor: args.name, position: positionOf(args.position).toString() } }),
      async (reactors, step) => {
        const position = positionOf(args.position);
        await reactors.skipAhead(args.name, position, step);
        return `${args.name} continues after position ${integer(position)}: events up to there are skipped.`;
      },
    ),
  ),
});

const withdraw = defineCommand({
  meta: {
    name: 'withdraw',
    description:
      'Take back the newest version of a reactor, when its release was taken back for good: the version below handles its events.',
  },
  args: {
    ...nameArgument,
    version: { type: 'positional', description: 'Its newest version, such as 2', required: true },
    ...reasonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ withdrawReactorVersion: { reactor: args.name, version: versionOf(args.version) } }),
      async (reactors, step) => {
        const version = versionOf(args.version);
        await reactors.withdraw(args.name, version, step);
        return `${args.name}@${version} is withdrawn: the version below handles its events.`;
      },
    ),
  ),
});

const cancel = defineCommand({
  meta: {
    name: 'cancel',
    description: 'Leave out an event whose handler waits: it does not run again. What its steps did stays.',
  },
  args: { ...nameArgument, ...positionArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ cancelWaitingEvent: { reactor: args.name, position: positionOf(args.position).toString() } }),
      async (reactors, step) => {
        const position = positionOf(args.position);
        await reactors.cancel(args.name, position, step);
        return `${args.name} does not continue with the event at position ${integer(position)}.`;
      },
    ),
  ),
});

const forget = defineCommand({
  meta: { name: 'forget', description: 'Remove a reactor that is not declared any more, with its dead letters.' },
  args: { ...nameArgument, ...reasonArgument, ...configArgument, ...remoteArgument },
  run: withErrorReporting(({ args }) =>
    change(
      args,
      () => ({ forgetReactor: { reactor: args.name } }),
      async (reactors, step) => {
        await reactors.forget(args.name, step);
        return `${args.name} is forgotten.`;
      },
    ),
  ),
});

export const reactor = defineCommand({
  meta: {
    name: 'reactor',
    description:
      'List, show, pause, resume, rewind, skip ahead or forget reactors, cancel what waits, and withdraw versions.',
  },
  subCommands: { list, show, history, pause, resume, rewind, skip, cancel, withdraw, forget },
});

interface ChangeArguments {
  readonly config: string | undefined;
  readonly remote: string | undefined;
  readonly reason: string | undefined;
}

async function change(
  args: ChangeArguments,
  remoteAction: () => RemoteAction,
  work: (reactors: ReactorOperations, step: TransitionReason) => Promise<string>,
): Promise<void> {
  if (isRemote(args)) {
    refuseOptions({ ...args });
    return act({ ...args, json: false }, remoteAction());
  }
  await withOperation(await loadConfig(args.config), async ({ reactors, actor }) => {
    console.log(await work(reactors, { actor, reason: args.reason ?? 'by hand' }));
  });
}

function positionOf(text: string): GlobalPosition {
  try {
    return globalPosition(text);
  } catch (error) {
    throw new RefoldError('INVALID_CONFIG', reasonOf(error));
  }
}

function versionOf(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new RefoldError('INVALID_CONFIG', `Expected a version, such as 2; found '${text.slice(0, 40)}'.`);
}

function toJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? part.toString() : part), 2);
}
