import type { InspectedReactor } from '../inspection/overview.ts';
import type { VersionStatus } from '../monitoring/status.ts';
import type { ActionName } from './action.ts';

/** What else decides which actions a version offers. */
export interface VersionSurroundings {
  readonly isDeclared: boolean;
  /** Whether a rollback of its projection takes it out of service: it is the highest of several active versions. */
  readonly isAboveActive: boolean;
  /** Whether live queries are compared on it. */
  readonly isShadow: boolean;
  readonly hasDiscards: boolean;
}

/** The actions that the state of a version allows at first sight. A preview says whether one would be refused. */
export function actionsOfVersion(version: VersionStatus, surroundings: VersionSurroundings): ActionName[] {
  const { state, paused, canary, rebuild, deadLetters } = version;
  const { isDeclared, isAboveActive, isShadow, hasDiscards } = surroundings;
  if (state === 'retired') return [];
  const isBuilt = state === 'ready' || state === 'active';
  const possible: readonly (readonly [ActionName, boolean])[] = [
    ['activate', state === 'ready' && !paused],
    ['rollback', isAboveActive],
    ['rebuild', isDeclared && !paused && rebuild === null && state !== 'building'],
    ['cancelRebuild', rebuild?.form === 'beside'],
    ['acceptRebuild', rebuild?.form === 'beside' && rebuild.heldReason !== null],
    ['pause', !paused],
    ['resume', paused !== null],
    ['takeSnapshot', isBuilt],
    ['restoreSnapshot', isDeclared && isBuilt && rebuild === null],
    ['dropSnapshot', true],
    ['startCanary', state === 'ready' && !paused],
    ['endCanary', canary !== null],
    ['startShadow', state === 'ready' && !isShadow],
    ['stopShadow', isShadow],
    ['retryDeadLetters', isDeclared && deadLetters > 0],
    ['discardDeadLetters', isDeclared && deadLetters > 0],
    ['recallDiscards', isDeclared && hasDiscards],
    ['retire', true],
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
