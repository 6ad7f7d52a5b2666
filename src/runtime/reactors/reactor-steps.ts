import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import {
  deleteReactorLettersPast,
  type ReactorLetter,
  readReactorLetters,
  requestReactorLetters,
} from '../../store/reactors/reactor-letters.ts';
import {
  deleteReactor,
  insertReactorStep,
  type LockedReactor,
  lockReactor,
  type ReactorStep,
  readReactorSteps,
  readReactors,
  setReactorCheckpoint,
  setReactorPaused,
} from '../../store/reactors/reactors.ts';
import { stepsForgottenAfter } from '../../store/reactors/step-keys.ts';
import type { StepReason } from '../versions/step.ts';

/** How a reactor fares. */
export interface ReactorStatus {
  readonly name: string;
  /** `running` and `idle` with and without an owner, `stopped` after an error, `paused` by an operator. */
  readonly state: 'running' | 'idle' | 'stopped' | 'paused';
  readonly owner: string | null;
  /** Everything up to here is handled, left out or kept as a dead letter. */
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** Positions of the log between the two; holes of rolled back appends count. */
  readonly lag: bigint;
  readonly handled: bigint;
  readonly skipped: bigint;
  readonly deadLetters: number;
  readonly error: { readonly message: string; readonly at: string } | null;
}

/** All reactors that were ever declared and not forgotten, by name. */
export async function readReactorStatus(db: Queryable, log: EventLog): Promise<ReactorStatus[]> {
  const reactors = await readReactors(db);
  // After the checkpoints, so that none of them is ahead of it.
  const head = reactors.length === 0 ? undefined : await log.head();
  return reactors.map((reactor) => ({
    name: reactor.name,
    state: reactor.paused ? 'paused' : reactor.status,
    owner: reactor.owner,
    position: reactor.checkpoint,
    head: head ?? reactor.checkpoint,
    lag: (head ?? reactor.checkpoint) - reactor.checkpoint,
    handled: reactor.eventsHandled,
    skipped: reactor.eventsSkipped,
    deadLetters: reactor.deadLetters,
    error: reactor.error,
  }));
}

/**
 * What an operator does to reactors. Each step is one transaction with its entry in the audit log; the process that owns the reactor sees
 * it within a second, waits for its handlers, and whoever owns it next begins from the checkpoint. All throw RefoldError
 * `INVALID_TRANSITION` where the step makes no sense.
 */
export interface ReactorSteps {
  status(): Promise<ReactorStatus[]>;
  /** Has it wait, also over restarts. */
  pause(name: string, step: StepReason): Promise<void>;
  /** Has it go on: one that was paused, or that stopped at an error. */
  resume(name: string, step: StepReason): Promise<void>;
  /** Sets it back: it handles everything past the position again. Its dead letters past it go, since it meets those events again. Refused where steps of those events are forgotten. */
  rewind(name: string, to: GlobalPosition, step: StepReason): Promise<void>;
  /** Leaves out what is between its checkpoint and the position. */
  skipAhead(name: string, to: GlobalPosition, step: StepReason): Promise<void>;
  /** Removes one that is not declared any more, with its dead letters; declared again, it is new. */
  forget(name: string, step: StepReason): Promise<void>;
  /** What was done, the last step first. */
  history(name: string): Promise<readonly (ReactorStep & { readonly at: string })[]>;
  deadLetters(name: string): Promise<readonly ReactorLetter[]>;
  /**
   * Has the owner handle kept events again, in order, until one of a key fails; or throw away those that failed, and handle what waited
   * behind them. Gives how many letters there are to do so with; it is done when none of them is `requested` any more.
   *
   * @param key one key only, as the letters have it
   */
  redeliver(name: string, what: 'retry' | 'discard', step: StepReason, key?: string): Promise<number>;
}

export function createReactorSteps(db: Database, log: EventLog): ReactorSteps {
  function change(
    name: string,
    { actor, reason }: StepReason,
    work: (tx: Queryable, found: LockedReactor) => Promise<{ step: ReactorStep['step']; to?: GlobalPosition }>,
  ): Promise<void> {
    return db.transaction(async (tx) => {
      const found = await lockReactor(tx, name);
      if (!found) throw refused(name, `is not known; 'refold reactor list' shows those that are.`);
      const { step, to = found.checkpoint } = await work(tx, found);
      await insertReactorStep(tx, { reactor: name, step, from: found.checkpoint, to, actor, reason });
    });
  }

  return {
    status: () => readReactorStatus(db, log),
    pause: (name, step) =>
      change(name, step, async (tx, { paused }) => {
        if (paused) throw refused(name, 'is paused already.');
        await setReactorPaused(tx, name, true);
        return { step: 'paused' };
      }),
    resume: (name, step) =>
      change(name, step, async (tx, { paused, status }) => {
        if (!paused && status !== 'stopped') throw refused(name, 'is neither paused nor stopped.');
        await setReactorPaused(tx, name, false);
        return { step: 'resumed' };
      }),
    rewind: (name, to, step) =>
      change(name, step, async (tx, { checkpoint }) => {
        if (to >= checkpoint) throw refused(name, `is at position ${checkpoint}; a rewind leads to one before that.`);
        const since = await stepsForgottenAfter(tx, name, to);
        if (since !== undefined)
          throw refused(
            name,
            `would run steps again whose outcomes are forgotten: those of events before ${since} ('runtime.stepDays'). Rewind it to a later position, or declare a reactor of another name for the older events.`,
          );
        await deleteReactorLettersPast(tx, name, to);
        await setReactorCheckpoint(tx, name, to);
        return { step: 'rewound', to };
      }),
    skipAhead: (name, to, step) =>
      change(name, step, async (tx, { checkpoint }) => {
        const head = await log.head();
        if (to <= checkpoint || to > head)
          throw refused(name, `is at position ${checkpoint} of ${head}; skip to one after that, up to the last.`);
        await setReactorCheckpoint(tx, name, to);
        return { step: 'skipped ahead', to };
      }),
    forget: (name, step) =>
      change(name, step, async (tx, { owner }) => {
        if (owner !== null)
          throw refused(name, `is owned by ${owner}, which declares it. Pause it, or remove its declaration.`);
        await deleteReactor(tx, name);
        return { step: 'forgotten' };
      }),
    history: (name) => readReactorSteps(db, name),
    deadLetters: (name) => readReactorLetters(db, name),
    async redeliver(name, what, step, key) {
      let letters = 0;
      await change(name, step, async (tx) => {
        letters = await requestReactorLetters(tx, name, key, what);
        if (letters === 0)
          throw refused(name, key === undefined ? 'has no dead letters.' : `has no dead letters of '${key}'.`);
        return { step: what === 'retry' ? 'letters retried' : 'letters discarded' };
      });
      return letters;
    },
  };
}

function refused(name: string, problem: string): RefoldError {
  return new RefoldError('INVALID_TRANSITION', `${name} ${problem}`, { name });
}
