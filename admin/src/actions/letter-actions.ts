import type { ActionInput, DeadLetterFilter } from '../gql/graphql.ts';
import type { Action } from './action.ts';

type Name = 'RETRY_DEAD_LETTERS' | 'DISCARD_DEAD_LETTERS';
type Choice = { readonly ids: readonly string[] } | { readonly filter: DeadLetterFilter };

const labels: Readonly<Record<Name, string>> = { RETRY_DEAD_LETTERS: 'Retry', DISCARD_DEAD_LETTERS: 'Discard' };

/**
 * Retries or discards dead letters: some, or all that match a filter. `what` completes the button, such as `all that match`, and `of` the title
 * of the dialog.
 */
export function letterAction(name: Name, what: string, choice: Choice, of = what): Action {
  const label = `${labels[name]} ${what}`.trim();
  const letters = 'ids' in choice ? { ids: [...choice.ids] } : choice;
  return {
    name,
    label,
    title: `${labels[name]} dead letters: ${of}`,
    options: [],
    initial: {},
    input: () => inputOf(name, letters),
    continues: (_, after) => inputOf(name, { ...letters, after }),
  };
}

function inputOf(name: Name, letters: { ids?: string[]; filter?: DeadLetterFilter; after?: string }): ActionInput {
  return name === 'RETRY_DEAD_LETTERS' ? { retryDeadLetters: letters } : { discardDeadLetters: letters };
}
