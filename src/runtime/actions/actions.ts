import { createHash } from 'node:crypto';
import type { AdminRight } from '../../config/admin-options.ts';
import { RefoldError } from '../../errors.ts';
import type { BoundedCount } from '../inspection/application.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import type { Action, ActionDefinition, ActionDefinitions, ActionName, ActionServices, Done, Draft } from './action.ts';
import { letterActions } from './letter-actions.ts';
import { reactorActions } from './reactor-actions.ts';
import { rebuildActions } from './rebuild-actions.ts';
import { rolloutActions } from './rollout-actions.ts';
import { versionActions } from './version-actions.ts';

/** What an action would do. Nothing has changed. */
export interface Preview extends Required<Omit<Draft, 'basis' | 'bound' | 'concerns'>> {
  readonly action: ActionName;
  readonly right: AdminRight;
  /** How many things it concerns; null if it concerns one. */
  readonly concerns: BoundedCount | null;
  /** For {@link Actions.run}; null if it would be refused. */
  readonly digest: string | null;
}

/** The actions of operators: each is previewed, and then run as it was previewed. */
export interface Actions {
  /** The right that an action needs. */
  rightOf(action: ActionName): AdminRight;
  /** @throws RefoldError `BAD_USER_INPUT` */
  preview(action: Action): Promise<Preview>;
  /**
   * @throws RefoldError `PREVIEW_OUTDATED` if the digest is not that of a preview of this action, or if what it described has changed since;
   *   `INVALID_TRANSITION` if the state no longer allows it
   */
  run(action: Action, digest: string, step: TransitionReason): Promise<Done>;
}

const definitions: ActionDefinitions<ActionName> = {
  ...versionActions,
  ...rolloutActions,
  ...rebuildActions,
  ...letterActions,
  ...reactorActions,
};

export function createActions(services: ActionServices): Actions {
  return {
    rightOf: (action) => definitions[action].right,
    async preview(action) {
      const { basis, bound, ...draft } = await drafted(services, action);
      const digest = draft.refusal ? null : digestOf(action, basis, bound);
      const nothingElse = { details: [], warnings: [], refusal: null, overcomeBy: [], concerns: null };
      return { action: action.name, right: definitions[action.name].right, ...nothingElse, ...draft, digest };
    },
    async run(action, digest, step) {
      const bound = boundOf(digest);
      const { basis, refusal } = await drafted(services, action);
      if (refusal) throw new RefoldError('INVALID_TRANSITION', refusal);
      if (digestOf(action, basis, bound) !== digest)
        throw new RefoldError(
          'PREVIEW_OUTDATED',
          'What the preview described has changed, or the action is another one. Nothing was done: preview it again.',
        );
      return definitionOf(action).run(services, action.input as never, step, bound); // as below
    },
  };
}

function definitionOf(action: Action): ActionDefinition<never> {
  return definitions[action.name] as ActionDefinition<never>; // `action.input` is the input of that definition
}

function drafted(services: ActionServices, action: Action): Promise<Draft> {
  return definitionOf(action).preview(services, action.input as never); // the input of that definition
}

/** Fingerprint of what is to be done and of the state that it was decided on, followed by what it concerns at most. */
function digestOf(action: Action, basis: unknown, bound: string | undefined): string {
  const text = JSON.stringify([action, basis, bound ?? null], (_, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  return bound === undefined ? hash : `${hash}.${Buffer.from(bound).toString('base64url')}`;
}

function boundOf(digest: string): string | undefined {
  const [, bound] = digest.split('.');
  return bound === undefined ? undefined : Buffer.from(bound, 'base64url').toString();
}
