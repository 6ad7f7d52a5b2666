import { inputFingerprint } from '../../commands/input-fingerprint.ts';
import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { unreadable } from '../../events/read-payload.ts';
import type { WaitForOptions, Waits, WaitUntilOptions } from '../../reactors/wait.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Wait, WaitOutcome } from '../../store/reactors/reactor-instances.ts';
import { stepWorkText } from '../../store/reactors/step-outcomes.ts';
import type { Step, StepNames } from '../commands/step-names.ts';

/** Decides the waits of handlers, and stores those that go on. */
export interface WaitStore {
  /** The outcome of a wait; undefined if the handler has to wait. @throws RefoldError `STEP_CHANGED`, `PROCESSOR_FENCED` */
  outcomeOf(event: RecordedEvent, step: Step, wait: Wait): Promise<WaitOutcome | undefined>;
}

export interface HandlerWaitsOptions {
  readonly event: RecordedEvent;
  /** The types that the reactor declares in `waitsFor`, each with the name under which the log keeps it. */
  readonly awaits: ReadonlyMap<string, string>;
  readonly names: StepNames;
  readonly store: WaitStore;
  readonly log: Pick<EventLog, 'readAt'>;
  /** Of the attempt. */
  readonly signal: AbortSignal;
  /** Ends the attempt: with {@link Suspended} if the handler waits, or with the error of a wait. */
  end(reason: unknown): void;
}

/** Why an attempt ended whose handler waits. */
export class Suspended extends Error {
  constructor() {
    super('The handler waits, so this attempt is over.');
  }
}

export interface HandlerWaits {
  readonly waits: Waits;
  /** Allows no further wait, and resolves when none is being decided. */
  close(): Promise<void>;
}

// 31 years
const longestTimeout = 1e12;

/** The waits of one attempt of a handler. */
export function createHandlerWaits(options: HandlerWaitsOptions): HandlerWaits {
  const { event, awaits, names, store, log, signal, end } = options;
  const received: GlobalPosition[] = [];
  let deciding: Promise<WaitOutcome | undefined> | undefined;
  let isClosed = false;

  /** Ends the attempt if a wait fails, also if the handler catches the error. Never returns if the handler has to wait. */
  async function decided(decide: () => Promise<WaitOutcome | undefined>): Promise<WaitOutcome> {
    signal.throwIfAborted();
    const isRefused = isClosed || deciding !== undefined;
    if (!isRefused) deciding = decide();
    try {
      if (isRefused)
        throw names.invalid('it begins a wait while another one is under way. Await each wait before the next.');
      const outcome = await deciding;
      if (outcome) return outcome;
      end(new Suspended());
    } catch (error) {
      end(error);
      throw error;
    } finally {
      if (!isRefused) deciding = undefined;
    }
    return new Promise<never>(() => {});
  }

  async function find(declared: readonly string[], { key, timeout, step: given }: WaitForOptions) {
    const problem = problemOf(declared, key, timeout, awaits);
    if (problem) throw names.invalid(problem);
    const types = declared.map((type) => awaits.get(type) ?? type);
    const step = names.ofWait('wait.for', `wait:${types.join('|')}`, given);
    const input = { wait: 'for', types: types.toSorted(), key, timeout: timeout ?? null };
    const wait = { types, key, until: null, timeout: timeout ?? null, received };
    return store.outcomeOf(event, step, storedWait(step, input, wait));
  }

  async function receive({ position, id }: WaitOutcome & { readonly kind: 'event' }): Promise<RecordedEvent> {
    const found = await log.readAt(globalPosition(position));
    if (found?.id !== id) throw vanished(event, names, position);
    const problem = unreadable(found);
    if (problem) throw problem;
    received.push(found.position);
    return found;
  }

  const waits = {
    async for(type: string | readonly string[], given: WaitForOptions) {
      const outcome = await decided(() => find([type].flat(), given ?? {}));
      if (outcome.kind === 'over') return undefined;
      return receive(outcome).catch((error: unknown) => {
        end(error);
        throw error;
      });
    },
    async until(time: Date | string, { step: given }: WaitUntilOptions = {}) {
      await decided(async () => {
        const until = timeOf(time);
        if (until === undefined)
          throw names.invalid(
            `'wait.until' needs a time: a valid Date, or an ISO 8601 date or time with its offset; found ${String(time)}.`,
          );
        const step = names.ofWait('wait.until', 'wait:until', given);
        const wait = { types: [], key: '', until, timeout: null, received };
        return store.outcomeOf(event, step, storedWait(step, { wait: 'until', until }, wait));
      });
    },
  };
  return {
    waits: waits as Waits, // the overloads differ in what the compiler knows of the outcome only
    async close() {
      isClosed = true;
      await deciding?.catch(() => {}); // reported to the handler
    },
  };
}

function storedWait(step: Step, input: unknown, wait: Omit<Wait, 'stepKey' | 'step' | 'work'>): Wait {
  const work = stepWorkText({ command: step.command, input: inputFingerprint(input) });
  return { ...wait, stepKey: step.key, step: step.name, work };
}

function problemOf(types: readonly unknown[], key: unknown, timeout: unknown, awaits: ReadonlyMap<string, string>) {
  const unknown = types.find((type) => typeof type !== 'string' || !awaits.has(type));
  if (unknown !== undefined)
    return `'waitsFor' of the reactor does not name '${String(unknown)}'. Add it there, with a function that returns its key.`;
  if (types.length === 0) return `'wait.for' needs an event type, such as 'PaymentReceived'.`;
  if (typeof key !== 'string') return `'wait.for' needs the key of the event as a text; found ${String(key)}.`;
  const isTime = typeof timeout === 'number' && timeout >= 0 && timeout <= longestTimeout;
  if (timeout !== undefined && !isTime)
    return `'timeout' is a number of milliseconds from 0 to ${longestTimeout}; found ${String(timeout)}. Leave it out to wait without end.`;
  return undefined;
}

const isoTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d))?$/;

// The last one that has four digits.
const lastTime = Date.UTC(9999, 11, 31);

/** The time as PostgreSQL reads it. Times before 1970 are over anyway, and those after the last one never are. */
function timeOf(time: unknown): string | undefined {
  const isGiven = time instanceof Date || (typeof time === 'string' && isoTime.test(time));
  const milliseconds = isGiven ? new Date(time).getTime() : Number.NaN;
  return Number.isNaN(milliseconds) ? undefined : new Date(Math.min(Math.max(0, milliseconds), lastTime)).toISOString();
}

function vanished({ type, position, streamId }: RecordedEvent, names: StepNames, awaited: string): RefoldError {
  return new RefoldError(
    'HISTORY_CHANGED',
    `${names.reactor}: a wait of '${type}' at position ${position} (stream '${streamId}') had returned the event at position ${awaited}, which the log does not hold any more, as after a restore. ` +
      'Steps after the wait may rest on it. Undo them if needed; then discard the event, or cancel its handling.',
    { reactor: names.reactor, position: position.toString(), awaited },
  );
}
