import type { Scenario } from './scenario.ts';

export interface Choice {
  readonly quick: boolean;
  /** Parts of names. */
  readonly only: readonly string[];
}

/** The scenarios that `only` names; without it all, or for a quick run those that fit its time. */
export function chooseScenarios<S extends Pick<Scenario, 'name' | 'fullOnly'>>(
  scenarios: readonly S[],
  { quick, only }: Choice,
): readonly S[] {
  if (only.length > 0) return scenarios.filter(({ name }) => only.some((part) => name.includes(part)));
  return quick ? scenarios.filter(({ fullOnly }) => fullOnly !== true) : scenarios;
}
