import type { ActionName } from '../gql/graphql.ts';
import { useRights } from '../server/caller.ts';
import { type Action, rightOf } from './action.ts';
import { openAction } from './opened-action.tsx';

/** What takes something away for good. */
const cutting: ReadonlySet<ActionName> = new Set(['RETIRE', 'DISCARD_DEAD_LETTERS', 'DROP_SNAPSHOT', 'FORGET_REACTOR']);

interface ActionButtonProps {
  readonly action: Action | undefined;
  /** After something was done. */
  readonly onDone?: () => void;
  /** Such as that nothing is selected. */
  readonly isDisabled?: boolean;
}

/** Opens the dialog of an action. Absent if the token lacks its right; the server checks it again. */
export function ActionButton({ action, onDone, isDisabled = false }: ActionButtonProps) {
  const rights = useRights();
  if (!action || !rights.has(rightOf[action.name])) return null;
  const tone = action.name === 'ACTIVATE' ? 'primary' : cutting.has(action.name) ? 'danger' : undefined;
  return (
    <button
      type="button"
      class={tone}
      disabled={isDisabled}
      onClick={() => openAction(action, onDone)}
      data-action={action.name}
    >
      {action.label}
    </button>
  );
}
