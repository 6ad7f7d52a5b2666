import type { GlobalPosition } from '../../events/global-position.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readReactors } from '../../store/reactors/reactors.ts';
import { createReactorOperations, type ReactorOperations } from '../reactors/reactor-operations.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import type { ActionDefinition, ActionDefinitions, ActionServices, Draft } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';

const rehearsedStep = { actor: 'preview', reason: 'preview' };

type Names =
  | 'pauseReactor'
  | 'resumeReactor'
  | 'rewindReactor'
  | 'skipReactor'
  | 'cancelWaitingEvent'
  | 'withdrawReactorVersion'
  | 'forgetReactor';

interface Wording<Input> {
  /** What will happen. */
  summary(input: Input): string;
  details?(services: ActionServices, input: Input): Promise<readonly string[]>;
  warnings?(input: Input): readonly string[];
  /** What has happened. */
  done(input: Input): string;
}

/** An action that is one operation on a reactor, in one transaction: its preview rehearses it. */
function reactorAction<
  N extends Names,
  Input extends Parameters<ActionDefinition<N>['run']>[1] & { readonly reactor: string },
>(
  operate: (reactors: ReactorOperations, input: Input, step: TransitionReason) => Promise<void>,
  wording: Wording<Input>,
) {
  const operations = (db: Database, { log }: ActionServices) => createReactorOperations(db, log);
  return {
    right: 'reactors',
    async preview(services: ActionServices, input: Input): Promise<Draft> {
      const { db } = services;
      const refusal = await refusalOf(() => operate(operations(rehearsalOf(db), services), input, rehearsedStep));
      const found = (await readReactors(db, 0)).find(({ name }) => name === input.reactor);
      return {
        of: input.reactor,
        summary: wording.summary(input),
        details: (await wording.details?.(services, input)) ?? [],
        warnings: wording.warnings?.(input) ?? [],
        refusal: refusal?.message ?? null,
        basis: [refusal === null, found?.paused ?? null, found?.status ?? null],
      };
    },
    async run(services: ActionServices, input: Input, step: TransitionReason) {
      await operate(operations(services.db, services), input, step);
      return { summary: wording.done(input), reactor: input.reactor };
    },
  } as const;
}

type OfReactor = { readonly reactor: string };
type AtPosition = OfReactor & { readonly position: GlobalPosition };

async function place({ db }: ActionServices, { reactor, position }: AtPosition): Promise<string[]> {
  const found = (await readReactors(db, 0)).find(({ name }) => name === reactor);
  if (!found) return [];
  const between = found.checkpoint > position ? found.checkpoint - position : position - found.checkpoint;
  return [`It is at position ${found.checkpoint}: ${between} positions of the log lie between.`];
}

export const reactorActions: ActionDefinitions<Names> = {
  pauseReactor: reactorAction((reactors, { reactor }: OfReactor, step) => reactors.pause(reactor, step), {
    summary: ({ reactor }) => `${reactor} handles nothing until it is resumed, also across restarts.`,
    done: ({ reactor }) => `${reactor} is paused.`,
  }),
  resumeReactor: reactorAction((reactors, { reactor }: OfReactor, step) => reactors.resume(reactor, step), {
    summary: ({ reactor }) => `${reactor} continues where it was paused or where it stopped.`,
    done: ({ reactor }) => `${reactor} is resumed.`,
  }),
  rewindReactor: reactorAction(
    (reactors, { reactor, position }: AtPosition, step) => reactors.rewind(reactor, position, step),
    {
      summary: ({ reactor, position }) =>
        `${reactor} handles all events after position ${position} again, with the same message ids.`,
      details: place,
      warnings: () => [
        'Side effects without a step or a message id happen again.',
        'Its dead letters after that position are deleted: those events come again.',
      ],
      done: ({ reactor, position }) =>
        `${reactor} continues after position ${position}: later events are handled again.`,
    },
  ),
  skipReactor: reactorAction(
    (reactors, { reactor, position }: AtPosition, step) => reactors.skipAhead(reactor, position, step),
    {
      summary: ({ reactor, position }) => `${reactor} leaves out all events up to and including position ${position}.`,
      details: place,
      warnings: () => ['The side effects of these events do not happen.'],
      done: ({ reactor, position }) =>
        `${reactor} continues after position ${position}: events up to there are skipped.`,
    },
  ),
  cancelWaitingEvent: reactorAction(
    (reactors, { reactor, position }: AtPosition, step) => reactors.cancel(reactor, position, step),
    {
      summary: ({ reactor, position }) =>
        `The handler of ${reactor} that waits with the event at position ${position} does not run again.`,
      warnings: () => ['What its steps did stays.'],
      done: ({ reactor, position }) => `${reactor} does not continue with the event at position ${position}.`,
    },
  ),
  withdrawReactorVersion: reactorAction(
    (reactors, { reactor, version }: OfReactor & { readonly version: number }, step) =>
      reactors.withdraw(reactor, version, step),
    {
      summary: ({ reactor, version }) =>
        `Version ${version} of ${reactor} is taken back: the version below handles its events, also those that have begun.`,
      done: ({ reactor, version }) => `${reactor}@${version} is withdrawn: the version below handles its events.`,
    },
  ),
  forgetReactor: reactorAction((reactors, { reactor }: OfReactor, step) => reactors.forget(reactor, step), {
    summary: ({ reactor }) =>
      `${reactor} is removed, with its dead letters and waiting events. If it is declared again, it is new.`,
    done: ({ reactor }) => `${reactor} is forgotten.`,
  }),
};
