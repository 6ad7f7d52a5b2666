import type { ActionInput, ActionName, Right } from '../gql/graphql.ts';

/** The values of an action's options, as the form has them. */
export type Values = Readonly<Record<string, string | number | boolean | undefined>>;

interface OptionBase {
  /** As in the action's input. */
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** Shown only if this holds. */
  readonly isShown?: (values: Values) => boolean;
}

export type ActionOption =
  | (OptionBase & { readonly kind: 'text' | 'checkbox' })
  | (OptionBase & { readonly kind: 'number'; readonly min: number; readonly max: number; readonly step?: number })
  | (OptionBase & { readonly kind: 'choice'; readonly choices: readonly (readonly [value: string, text: string])[] });

/** An action with all that it needs to be previewed and run. */
export interface Action {
  readonly name: ActionName;
  /** What the button says, such as `Activate`. */
  readonly label: string;
  /** What the dialog is about, such as `Activate cart_summary@2`. */
  readonly title: string;
  readonly options: readonly ActionOption[];
  readonly initial: Values;
  readonly input: (values: Values) => ActionInput;
  /** Runs again for what is left, until nothing is: dead letters that match a filter. */
  readonly continues?: (input: ActionInput, after: string) => ActionInput;
}

export const rightOf: Readonly<Record<ActionName, Right>> = {
  ACTIVATE: 'ACTIVATE',
  ROLLBACK: 'ROLLBACK',
  RETIRE: 'RETIRE',
  REBUILD: 'REBUILD',
  CANCEL_REBUILD: 'REBUILD',
  ACCEPT_REBUILD: 'REBUILD',
  PAUSE: 'PAUSE',
  RESUME: 'PAUSE',
  TAKE_SNAPSHOT: 'SNAPSHOT',
  RESTORE_SNAPSHOT: 'SNAPSHOT',
  DROP_SNAPSHOT: 'SNAPSHOT',
  START_CANARY: 'CANARY',
  END_CANARY: 'CANARY',
  START_SHADOW: 'SHADOW',
  STOP_SHADOW: 'SHADOW',
  RETRY_DEAD_LETTERS: 'RETRY_DEAD_LETTERS',
  DISCARD_DEAD_LETTERS: 'DISCARD_DEAD_LETTERS',
  RECALL_DISCARDS: 'DISCARD_DEAD_LETTERS',
  PAUSE_REACTOR: 'REACTORS',
  RESUME_REACTOR: 'REACTORS',
  REWIND_REACTOR: 'REACTORS',
  SKIP_REACTOR: 'REACTORS',
  CANCEL_WAITING_EVENT: 'REACTORS',
  WITHDRAW_REACTOR_VERSION: 'REACTORS',
  FORGET_REACTOR: 'REACTORS',
};

/** What a field does that the server names because it would overcome its refusal. */
export const overcoming: Readonly<Record<string, string>> = {
  allowBreaking: 'Also if clients lose fields that they use',
  force: 'Also if it answers clients',
  allowLoss: 'Also if running processes or a unique rule lose it',
};
