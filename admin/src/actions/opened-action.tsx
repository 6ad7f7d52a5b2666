import { createStore, useStore } from '../server/store.ts';
import type { Action } from './action.ts';
import { ActionDialog } from './action-dialog.tsx';

interface Opened {
  readonly action: Action;
  /** After something was done. */
  readonly onDone: (() => void) | undefined;
}

const opened = createStore<Opened | undefined>(undefined);

export function openAction(action: Action, onDone?: () => void): void {
  opened.set({ action, onDone });
}

/**
 * The dialog of the action that is open. It is apart from the button that opens it: the button goes away when the action is done and the new
 * state no longer allows it, and the dialog stays.
 */
export function OpenedAction() {
  const current = useStore(opened);
  if (!current) return null;
  return <ActionDialog action={current.action} onDone={current.onDone} onClose={() => opened.set(undefined)} />;
}
