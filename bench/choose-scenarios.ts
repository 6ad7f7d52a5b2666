import { isTurn } from '../test/support/turns.ts';
import type { Scenario } from './scenario.ts';

export interface Choice {
  readonly quick: boolean;
  /** Parts of names. */
  readonly only: readonly string[];
  /** On three successive days each scenario is measured once. The number of the day; undefined for all of them. */
  readonly day?: number | undefined;
}

/** The scenarios that `only` names; without it all, or for a quick run those that fit its time. */
export function chooseScenarios<S extends Pick<Scenario, 'name' | 'fullOnly'>>(
  scenarios: readonly S[],
  { quick, only, day }: Choice,
): readonly S[] {
  if (only.length > 0) return scenarios.filter(({ name }) => only.some((part) => name.includes(part)));
  const fitting = quick ? scenarios.filter(({ fullOnly }) => fullOnly !== true) : scenarios;
  return day === undefined ? fitting : fitting.filter((_, index) => isTurn(index, day));
}
