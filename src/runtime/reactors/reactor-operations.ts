import { InvalidInput, RefoldError } from '../../errors.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Database } from '../../store/postgres/database.ts';
import { deleteReactorAttempts } from '../../store/reactors/reactor-attempts.ts';
import { deleteInstances, readWaitingEvents, type WaitingEvent } from '../../store/reactors/reactor-instances.ts';
import {
  deleteReactorLettersPast,
  type ReactorLetter,
  readReactorLetters,
  requestReactorLetters,
} from '../../store/reactors/reactor-letters.ts';
import {
  deleteReactor,
  insertReactorOperation,
  type LockedReactor,
  lockReactor,
  type ReactorOperation,
  readReactorOperations,
  readReactors,
  restartReactor,
  setReactorCheckpoint,
  setReactorPaused,
} from '../../store/reactors/reactors.ts';
import { stepsForgottenAfter } from '../../store/reactors/step-keys.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import { withdrawVersion } from './begin-version.ts';
import { type ReactorVersionStatus, readReactorVersions } from './reactor-versions.ts';

/** The state and progress of a reactor. */
export interface ReactorStatus {
  readonly name: string;
  /** `running` and `idle` with and without an owner, `stopped` after an error, `paused` by an operator. */
  readonly state: 'running' | 'idle' | 'stopped' | 'paused';
  readonly owner: string | null;
  /** Everything up to this position is handled, skipped or stored as a dead letter. */
  readonly position: GlobalPosition;
  readonly head: GlobalPosition;
  /** Positions of the log between the two. Gaps that rolled back appends leave count too. */
  readonly lag: bigint;
  readonly handled: bigint;
  readonly skipped: bigint;
  readonly deadLetters: number;
  /** Events whose handlers wait, for a time or for another event. */
  readonly waiting: number;
  /** When the next of these waits is over at the latest. Null if there is none, or if all wait without end. */
  readonly nextDue: string | null;
  /** Its versions that have begun, the lowest first. */
  readonly versions: readonly ReactorVersionStatus[];
  readonly error: { readonly message: string; readonly at: string } | null;
}

/** Returns all reactors that were ever declared and not forgotten, by name. Counts what waits up to `countUpTo`. @default all */
export async function readReactorStatus(
  db: Queryable,
  log: EventLog,
  countUpTo: number | null = null,
): Promise<ReactorStatus[]> {
  const reactors = await readReactors(db, countUpTo);
  const versions = await readReactorVersions(db, countUpTo);
  // Read after the checkpoints. Otherwise a checkpoint could be ahead of the head.
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
    waiting: reactor.waiting,
    nextDue: reactor.nextDue,
    versions: versions.get(reactor.name) ?? [],
    error: reactor.error,
  }));
}

/**
 * What operators can do with reactors. Each operation and its entry in the audit log commit in one transaction. The process that owns the
 * reactor sees it within a second and waits for its handlers. The next owner starts from the checkpoint. All operations throw RefoldError
 * `INVALID_TRANSITION` if the reactor's state does not allow them, and InvalidInput if the reason or the position is none.
 */
export interface ReactorOperations {
  status(): Promise<ReactorStatus[]>;
  /** Pauses the reactor, also across restarts. */
  pause(name: string, step: TransitionReason): Promise<void>;
  /** Resumes a reactor that was paused, or that stopped at an error. */
  resume(name: string, step: TransitionReason): Promise<void>;
  /**
   * Sets the checkpoint back: the reactor handles everything past the position again. Its dead letters past the position are deleted, because
   * those events come again. Handlers that wait run again from their start, with their stored outcomes and due times. Refused if outcomes
   * of steps of those events are already forgotten.
   */
  rewind(name: string, to: GlobalPosition, step: TransitionReason): Promise<void>;
  /** Moves the checkpoint ahead: the events up to the position are left out, also those of them that wait. */
  skipAhead(name: string, to: GlobalPosition, step: TransitionReason): Promise<void>;
  /**
   * Takes back the newest version of a reactor, after its program was taken back for good: the version below handles its events, also those
   * that have begun. Refused while a process that declares it runs. If it is declared again, it begins again.
   */
  withdraw(name: string, version: number, step: TransitionReason): Promise<void>;
  /** Deletes a reactor that is no longer declared, with its dead letters and waiting events. If it is declared again, it is new. */
  forget(name: string, step: TransitionReason): Promise<void>;
  /** Returns the operations on the reactor, the latest first. */
  history(name: string): Promise<readonly (ReactorOperation & { readonly at: string })[]>;
  deadLetters(name: string): Promise<readonly ReactorLetter[]>;
  /** Returns the events whose handlers wait, in log order, at most 1,000. */
  waiting(name: string): Promise<readonly WaitingEvent[]>;
  /** Leaves out an event whose handler waits: it does not run again. What its steps did stays. A reactor that stopped at it continues. */
  cancel(name: string, position: GlobalPosition, step: TransitionReason): Promise<void>;
  /**
   * Requests the owner to handle dead letters again, in order, until one of a key fails; or to discard those that failed and handle those that
   * waited behind them. Returns the number of dead letters concerned. The request is finished when none of them is `requested` any more.
   *
   * @param which limits the request to one key, as the dead letters have it, or to the dead letters at these positions. A retry of one begins with
   *   the first of its key
   */
  redeliver(
    name: string,
    what: 'retry' | 'discard',
    step: TransitionReason,
    which?: string | readonly GlobalPosition[],
  ): Promise<number>;
}

// Waiting events that are listed at once.
const mostShown = 1000;

export function createReactorOperations(db: Database, log: EventLog): ReactorOperations {
  async function change(
    name: string,
    given: TransitionReason,
    work: (
      tx: Queryable,
      found: LockedReactor,
    ) => Promise<{ operation: ReactorOperation['operation']; to?: GlobalPosition; what?: string }>,
  ): Promise<void> {
    const { actor, reason } = checkReason(name, given);
    await db.transaction(async (tx) => {
      const found = await lockReactor(tx, name);
      if (!found) throw refused(name, `is not known; 'refold reactor list' shows those that are.`);
      const { operation, to = found.checkpoint, what } = await work(tx, found);
      const why = what === undefined ? reason : `${what}: ${reason}`;
      await insertReactorOperation(tx, { reactor: name, operation, from: found.checkpoint, to, actor, reason: why });
    });
  }

  return {
    status: () => readReactorStatus(db, log),
    pause: (name, step) =>
      change(name, step, async (tx, { paused }) => {
        if (paused) throw refused(name, 'is paused already.');
        await setReactorPaused(tx, name, true);
        return { operation: 'paused' };
      }),
    resume: (name, step) =>
      change(name, step, async (tx, { paused, status }) => {
        if (!paused && status !== 'stopped') throw refused(name, 'is neither paused nor stopped.');
        await setReactorPaused(tx, name, false);
        await deleteReactorAttempts(tx, name);
        return { operation: 'resumed' };
      }),
    rewind: (name, to, step) =>
      change(name, step, async (tx, { checkpoint }) => {
        checkPosition(name, to);
        const head = await log.head();
        if (to > head) throw refused(name, `can't be rewound to position ${to}: the log ends at ${head}.`);
        if (to >= checkpoint) throw refused(name, `is at position ${checkpoint}; a rewind leads to one before that.`);
        const since = await stepsForgottenAfter(tx, name, to);
        if (since !== undefined)
          throw refused(
            name,
            `would run steps again whose outcomes are forgotten: those of events before ${since} ('runtime.stepDays'). Rewind it to a later position, or declare a reactor of another name for the older events.`,
          );
        await deleteReactorLettersPast(tx, name, to);
        await deleteReactorAttempts(tx, name);
        await setReactorCheckpoint(tx, name, to);
        return { operation: 'rewound', to };
      }),
    skipAhead: (name, to, step) =>
      change(name, step, async (tx, { checkpoint }) => {
        checkPosition(name, to);
        const head = await log.head();
        if (to <= checkpoint || to > head)
          throw refused(name, `is at position ${checkpoint} of ${head}; skip to one after that, up to the last.`);
        await deleteReactorAttempts(tx, name);
        await deleteInstances(tx, name, checkpoint, to);
        await setReactorCheckpoint(tx, name, to);
        return { operation: 'skipped ahead', to };
      }),
    withdraw: (name, version, step) =>
      change(name, step, async (tx, { checkpoint }) => {
        const problem = await withdrawVersion(tx, name, version, checkpoint);
        if (problem !== undefined) throw refused(name, problem);
        return { operation: 'version withdrawn', what: `version ${version}` };
      }),
    forget: (name, step) =>
      change(name, step, async (tx, { owner }) => {
        if (owner !== null)
          throw refused(name, `is owned by ${owner}, which declares it. Pause it, or remove its declaration.`);
        await deleteReactor(tx, name);
        return { operation: 'forgotten' };
      }),
    history: (name) => readReactorOperations(db, name),
    deadLetters: (name) => readReactorLetters(db, name),
    waiting: (name) => readWaitingEvents(db, name, mostShown),
    cancel: (name, position, step) =>
      change(name, step, async (tx) => {
        checkPosition(name, position);
        if ((await readReactorLetters(tx, name)).some((letter) => letter.position === position))
          throw refused(
            name,
            `has a dead letter at position ${position}: discard that ('refold dead-letters discard').`,
          );
        const before = globalPosition(position === 0n ? 0n : position - 1n);
        if ((await deleteInstances(tx, name, before, position)) === 0)
          throw refused(name, `has no event at position ${position} whose handler waits.`);
        await restartReactor(tx, name);
        return { operation: 'cancelled', to: position };
      }),
    async redeliver(name, what, step, which) {
      let letters = 0;
      await change(name, step, async (tx) => {
        letters = await requestReactorLetters(tx, name, which, what);
        if (letters === 0)
          throw refused(
            name,
            typeof which === 'string' ? `has no dead letters of '${which}'.` : 'has no dead letters.',
            { deadLetters: 0 },
          );
        return { operation: what === 'retry' ? 'letters retried' : 'letters discarded' };
      });
      return letters;
    },
  };
}

function checkReason(name: string, given: unknown): TransitionReason {
  const { actor, reason }: Partial<Record<keyof TransitionReason, unknown>> = given ?? {};
  const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
  const issue = (path: string, what: string) => ({
    path: [path],
    message: `the audit log keeps ${what}, and a text is needed`,
  });
  const issues = [
    ...(isText(actor) ? [] : [issue('actor', 'who changes the reactor')]),
    ...(isText(reason) ? [] : [issue('reason', 'why the reactor is changed')]),
  ];
  if (issues.length > 0) throw new InvalidInput('BAD_USER_INPUT', `The change of '${name}'`, issues);
  return given as TransitionReason; // both texts were found
}

function checkPosition(name: string, to: unknown): void {
  if (typeof to === 'bigint' && to >= 0n) return;
  const found = typeof to === 'string' ? `the text '${to.slice(0, 40)}'` : String(to);
  const message = `a position of the log is needed, such as globalPosition('1042'); found ${found}.`;
  throw new InvalidInput('BAD_USER_INPUT', `The change of '${name}'`, [{ path: ['to'], message }]);
}

function refused(name: string, problem: string, fields: object = {}): RefoldError {
  return new RefoldError('INVALID_TRANSITION', `${name} ${problem}`, { name, ...fields });
}
