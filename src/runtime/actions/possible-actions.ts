import type { InspectedReactor } from '../inspection/overview.ts';
import type { VersionStatus } from '../monitoring/status.ts';
import type { ActionName } from './action.ts';

/** The actions that the state of a version allows at first sight. A preview says whether one would be refused. */
export function actionsOfVersion(version: VersionStatus, isDeclared: boolean): ActionName[] {
  const { state, paused, canary, rebuild, heldReason, deadLetters } = version;
  if (state === 'retired') return [];
  const isBuilt = state === 'ready' || state === 'active';
  const possible: readonly (readonly [ActionName, boolean])[] = [
    ['activate', state === 'ready' && !paused],
    ['rollback', state === 'active'],
    ['rebuild', isDeclared && !paused && rebuild === null && state !== 'building'],
    ['cancelRebuild', rebuild?.form === 'beside'],
    ['acceptRebuild', rebuild?.form === 'beside' && rebuild.heldReason !== null],
    ['retire', true],
    ['pause', !paused],
    ['resume', paused !== null],
    ['takeSnapshot', isBuilt],
    ['restoreSnapshot', isDeclared && isBuilt && rebuild === null],
    ['dropSnapshot', true],
    ['startCanary', state === 'ready' && !paused],
    ['endCanary', canary !== null],
    ['startShadow', state === 'ready'],
    ['stopShadow', state === 'ready' && heldReason !== undefined],
    ['retryDeadLetters', isDeclared && deadLetters > 0],
    ['discardDeadLetters', isDeclared && deadLetters > 0],
    ['recallDiscards', isDeclared],
  ];
  return possible.flatMap(([action, isPossible]) => (isPossible ? [action] : []));
}

/** Like {@link actionsOfVersion}. */
export function actionsOfReactor({ state, deadLetters, waiting, versions, owner }: InspectedReactor): ActionName[] {
  const possible: readonly (readonly [ActionName, boolean])[] = [
    ['pauseReactor', state !== 'paused'],
    ['resumeReactor', state === 'paused' || state === 'stopped'],
    ['rewindReactor', true],
    ['skipReactor', true],
    ['cancelWaitingEvent', waiting > 0],
    ['withdrawReactorVersion', versions.length > 1],
    ['forgetReactor', owner === null],
    ['retryDeadLetters', deadLetters > 0],
    ['discardDeadLetters', deadLetters > 0],
  ];
  return possible.flatMap(([action, isPossible]) => (isPossible ? [action] : []));
}
