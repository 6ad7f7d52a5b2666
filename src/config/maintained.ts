import { closest } from '../events/closest.ts';
import type { Projection } from '../projections/projection/projection.ts';
import type { Reactor } from '../reactors/reactor.ts';
import { invalidConfig } from './option-checks.ts';

/** What a process maintains of an application's declarations. */
export interface Maintained {
  readonly projections: readonly Projection[];
  readonly reactors: readonly Reactor[];
}

/**
 * Returns the versions and reactors of these names, such as `cart_summary@2` and `confirmation_mails`; all if there is no list.
 *
 * @throws RefoldError `INVALID_CONFIG` if a name is declared nowhere
 */
export function maintainedBy(declared: Maintained, only: readonly string[] | undefined): Maintained {
  const { projections, reactors } = declared;
  if (only === undefined) return { projections, reactors };
  const known = [...projections.map(({ id }) => id), ...reactors.map(({ name }) => name)];
  if (only.length === 0) throw invalidConfig(`'only' names nothing. Name versions and reactors, or leave it out.`);
  for (const name of only) {
    if (!known.includes(name))
      throw invalidConfig(`'only' names '${name}', which the application does not declare.${closest(name, known)}`);
  }
  return {
    projections: projections.filter(({ id }) => only.includes(id)),
    reactors: reactors.filter(({ name }) => only.includes(name)),
  };
}
