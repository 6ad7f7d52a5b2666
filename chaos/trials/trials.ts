import type { Action } from '../plan.ts';
import type { World } from '../world.ts';
import { claimValues } from './claimed-values.ts';
import { failForAWhile, type HeldAnswer } from './held-answers.ts';
import { appendLarge } from './large-events.ts';
import { foldSlowly, type SlowEvent } from './slow-events.ts';

/** What was seen while a certain thing was tried. */
export interface Trials {
  readonly heldAnswers: HeldAnswer[];
  readonly slowEvents: SlowEvent[];
}

export const noTrials = (): Trials => ({ heldAnswers: [], slowEvents: [] });

export type Trial = Extract<
  Action,
  { readonly kind: 'fail for a while' | 'a slow event' | 'large events' | 'claim values' }
>;

export interface TrialsOptions {
  readonly world: World;
  /** Continues while other actions are performed. */
  last(work: Promise<void>): void;
  /** Ends the lasting faults, and resolves when everything works again. */
  quiet(): Promise<void>;
}

/** Returns a line about the result. */
export async function perform(trial: Trial, { world, last, quiet }: TrialsOptions): Promise<string> {
  if (trial.kind === 'claim values') {
    last(claimValues(world, trial.seconds, trial.draw));
    return '';
  }
  if (trial.kind === 'large events') {
    last(appendLarge(world, trial.heaps));
    return '';
  }
  await quiet();
  switch (trial.kind) {
    case 'fail for a while':
      return failForAWhile(world);
    case 'a slow event':
      return foldSlowly(world, trial.leases * world.options.leaseSeconds * 1_000);
  }
}
