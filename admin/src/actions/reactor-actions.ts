import type { ActionName } from '../gql/graphql.ts';
import type { Action } from './action.ts';

/** The action of a reactor, or undefined if it needs more: an event, or a version. */
export function reactorAction(name: ActionName, reactor: string, position: string): Action | undefined {
  switch (name) {
    case 'PAUSE_REACTOR':
      return action(name, 'Pause', reactor, () => ({ pauseReactor: { reactor } }));
    case 'RESUME_REACTOR':
      return action(name, 'Resume', reactor, () => ({ resumeReactor: { reactor } }));
    case 'REWIND_REACTOR':
      return atPosition(name, 'Rewind', reactor, position);
    case 'SKIP_REACTOR':
      return atPosition(name, 'Skip', reactor, position);
    case 'FORGET_REACTOR':
      return action(name, 'Forget', reactor, () => ({ forgetReactor: { reactor } }));
    default:
      return undefined;
  }
}

export function cancelWaitingEvent(reactor: string, position: string): Action {
  const input = () => ({ cancelWaitingEvent: { reactor, position } });
  return action('CANCEL_WAITING_EVENT', 'Cancel', `${reactor}, event ${position}`, input);
}

export function withdrawVersion(reactor: string, version: number): Action {
  const input = () => ({ withdrawReactorVersion: { reactor, version } });
  return action('WITHDRAW_REACTOR_VERSION', 'Withdraw', `${reactor}, version ${version}`, input);
}

function atPosition(name: 'REWIND_REACTOR' | 'SKIP_REACTOR', label: string, reactor: string, position: string): Action {
  const hint =
    name === 'REWIND_REACTOR' ? 'It handles the events after this position again.' : 'The event that it leaves out.';
  return {
    ...action(name, label, reactor, (values) => {
      const target = { reactor, position: String(values.position ?? '').trim() || '0' };
      return name === 'REWIND_REACTOR' ? { rewindReactor: target } : { skipReactor: target };
    }),
    options: [{ kind: 'text', name: 'position', label: 'Position', hint }],
    initial: { position },
  };
}

function action(name: ActionName, label: string, of: string, input: Action['input']): Action {
  return { name, label, title: `${label}: ${of}`, options: [], initial: {}, input };
}
