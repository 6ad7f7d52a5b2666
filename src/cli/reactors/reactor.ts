import { type ArgsDef, defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { globalPosition } from '../../events/global-position.ts';
import { reasonOf } from '../../thrown.ts';
import { type ActionInput, act } from '../api/run-action.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { jsonArgument, reasonArgument } from '../shared/version-argument.ts';
import { printAudit } from '../versions/history.ts';
import {
  type Reactor,
  reactorFields,
  reactorsToText,
  type WaitingEvent,
  waitingFields,
  waitingToText,
} from './reactor-text.ts';

const nameArgument = {
  name: { type: 'positional', description: 'Such as confirmation_mails', required: true },
} as const;
const positionArgument = {
  position: { type: 'positional', description: 'A position of the log, such as 1042', required: true },
} as const;

const list = defineCommand({
  meta: { name: 'list', description: 'Show every reactor: state, position, lag, what it has handled, its owner.' },
  args: { ...jsonArgument, ...apiArguments },
  run: withErrorReporting(async ({ args }) => {
    const { reactors } = await withApi(args, (api) =>
      api.query<{ reactors: Reactor[] }>(`{ reactors { ${reactorFields} } }`),
    );
    if (args.json) console.log(json(reactors));
    else console.log(reactors.length === 0 ? 'No reactor is registered yet.' : reactorsToText(reactors));
  }),
});

const show = defineCommand({
  meta: { name: 'show', description: 'Show a reactor, and the events whose handlers wait, for what and until when.' },
  args: { ...nameArgument, ...jsonArgument, ...apiArguments },
  run: withErrorReporting(async ({ args }) => {
    const { name } = args;
    const query = `query Reactor($name: ID!) { reactor(name: $name) { ${reactorFields} waitingEvents { ${waitingFields} } } }`;
    const { reactor } = await withApi(args, (api) =>
      api.query<{ reactor: (Reactor & { waitingEvents: WaitingEvent[] }) | null }>(query, { name }),
    );
    if (!reactor)
      throw new RefoldError('INVALID_CONFIG', `There is no reactor '${name}'; 'refold reactor list' shows them.`);
    if (args.json) return console.log(json(reactor));
    const { waitingEvents, waiting } = reactor;
    console.log([reactorsToText([reactor]), '', waitingToText(waitingEvents, waiting.value)].join('\n'));
  }),
});

const history = defineCommand({
  meta: { name: 'history', description: 'Show what operators did to a reactor: who, when and why; the latest last.' },
  args: { ...nameArgument, ...jsonArgument, ...apiArguments },
  run: withErrorReporting(({ args }) => withApi(args, (api) => printAudit(api, args, { reactor: args.name }, 1000))),
});

const pause = reactorCommand(
  { name: 'pause', description: 'Pause a reactor until it is resumed, also across restarts.' },
  {},
  ({ name }) => ({ pauseReactor: { reactor: name } }),
);

const resume = reactorCommand(
  { name: 'resume', description: 'Resume a reactor that was paused, or that stopped at an error.' },
  {},
  ({ name }) => ({ resumeReactor: { reactor: name } }),
);

const rewind = reactorCommand(
  {
    name: 'rewind',
    description: 'Rewind a reactor: it handles all events after the position again, with the same message ids.',
  },
  positionArgument,
  ({ name, position }) => ({ rewindReactor: { reactor: name, position: positionOf(position) } }),
);

const skip = reactorCommand(
  { name: 'skip', description: 'Have a reactor skip all events up to and including the position.' },
  positionArgument,
  ({ name, position }) => ({ skipReactor: { reactor: name, position: positionOf(position) } }),
);

const withdraw = reactorCommand(
  {
    name: 'withdraw',
    description:
      'Take back the newest version of a reactor, when its release was taken back for good: the version below handles its events.',
  },
  { version: { type: 'positional', description: 'Its newest version, such as 2', required: true } },
  ({ name, version }) => ({ withdrawReactorVersion: { reactor: name, version: versionOf(version) } }),
);

const cancel = reactorCommand(
  {
    name: 'cancel',
    description: 'Leave out an event whose handler waits: it does not run again. What its steps did stays.',
  },
  positionArgument,
  ({ name, position }) => ({ cancelWaitingEvent: { reactor: name, position: positionOf(position) } }),
);

const forget = reactorCommand(
  { name: 'forget', description: 'Remove a reactor that is not declared any more, with its dead letters.' },
  {},
  ({ name }) => ({ forgetReactor: { reactor: name } }),
);

export const reactor = defineCommand({
  meta: {
    name: 'reactor',
    description:
      'List, show, pause, resume, rewind, skip ahead or forget reactors, cancel what waits, and withdraw versions.',
  },
  subCommands: { list, show, history, pause, resume, rewind, skip, cancel, withdraw, forget },
});

interface OwnArguments {
  readonly name: string;
  readonly position: string | undefined;
  readonly version: string | undefined;
}

/** A command that is one action on a reactor. */
function reactorCommand(
  meta: { readonly name: string; readonly description: string },
  own: ArgsDef,
  actionOf: (args: OwnArguments) => ActionInput,
) {
  return defineCommand({
    meta,
    args: { ...nameArgument, ...own, ...reasonArgument, ...jsonArgument, ...apiArguments },
    run: withErrorReporting(({ args }) => {
      const {
        name,
        position,
        version,
        reason,
        json: asJson,
        config,
        remote,
      } = args as unknown as OwnArguments & Parameters<typeof act>[0]; // those above
      return act({ reason, json: asJson, config, remote }, actionOf({ name, position, version }));
    }),
  });
}

function positionOf(text = ''): string {
  try {
    return globalPosition(text).toString();
  } catch (error) {
    throw new RefoldError('INVALID_CONFIG', reasonOf(error));
  }
}

function versionOf(text = ''): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new RefoldError('INVALID_CONFIG', `Expected a version, such as 2; found '${text.slice(0, 40)}'.`);
}
