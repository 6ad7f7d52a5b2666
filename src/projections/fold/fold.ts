import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventPace } from '../../events/event-pace.ts';
import { invalidUpcast, isVersionUnknown, unreadable } from '../../events/read-payload.ts';
import { deepFreeze } from '../columns/deep-freeze.ts';
import type { Row } from '../columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../projection/projection.ts';
import { evolveFailed, isEvolveFailure, versionUnknownTo } from './fold-failures.ts';

/** The rows that the fold reads and writes: a cache in front of the read table. */
export interface RowMemory {
  /** The row, or null if it does not exist. Undefined if the cache does not know. */
  get(text: string): Row | null | undefined;
  set(text: string, key: RowKey, row: Row | null): void;
}

/** One event applied to one row. */
export interface FoldStep {
  readonly event: RecordedEvent;
  readonly key: RowKey;
  /** The key's text, see {@link keyText}. */
  readonly text: string;
}

/**
 * The steps of these events, in log order. An event that changes several rows makes several steps. A key that is returned twice counts
 * once.
 *
 * @param onEvent called after each event; true ends the work early
 * @throws RefoldError `PAYLOAD_VERSION_UNKNOWN` at the first event that this program can't read. No policy may leave it out.
 */
export function foldSteps(
  projection: Projection,
  events: readonly RecordedEvent[],
  onKeyFailure: (event: RecordedEvent, error: RefoldError) => void = (_, error) => {
    throw error;
  },
  onEvent?: (event: RecordedEvent) => boolean,
): FoldStep[] {
  const steps: FoldStep[] = [];
  for (const event of events) {
    const unread = unreadable(event);
    if (isVersionUnknown(unread)) throw versionUnknownTo(projection, unread);
    try {
      const keys = projection.keysOf(event);
      if (keys.length === 1)
        steps.push({ event, key: keys[0] as RowKey, text: keyText(keys[0] as RowKey) }); // one key: no duplicates to remove
      else for (const [text, key] of new Map(keys.map((key) => [keyText(key), key]))) steps.push({ event, key, text });
    } catch (cause) {
      onKeyFailure(event, evolveFailed(projection, event, 'key', cause));
    }
    if (onEvent?.(event)) break;
  }
  return steps;
}

export interface FoldOptions {
  readonly freeze: boolean;
  /** Ends the fold after an event when the event loop must have a turn. */
  readonly pace?: EventPace | undefined;
}

/**
 * Folds the steps, in order, into the rows in memory. Memory must know every row of the steps. An event changes all of its rows or none: if
 * one fails, memory holds the result of the events before it. With `freeze`, rows and events are deep-frozen. An `evolve` that mutates them
 * then throws at the mutation.
 *
 * @returns how many steps were folded: all of them without a pace
 * @throws RefoldError `EVOLVE_FAILED` that names projection, event type, position and stream.
 */
export function fold(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  options: FoldOptions,
): number {
  let pending: { step: FoldStep; row: Row | null }[] = [];
  const settle = () => {
    for (const { step, row } of pending) memory.set(step.text, step.key, row);
    pending = [];
  };
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index] as FoldStep; // index < length
    const { event, key, text } = step;
    const before = steps[index - 1]?.event;
    const isFirst = before !== event;
    if (isFirst && pending.length > 0) settle();
    if (isFirst && before && options.pace?.after(before)) return index;
    const row = memory.get(text);
    if (row === undefined) throw new Error(`fold: row ${text} of ${projection.id} was not loaded`);
    const unread = unreadable(event);
    if (unread) throw evolveFailed(projection, event, 'upcast', unread.cause, row);
    if (options.freeze) prepare(projection, event);
    const next = evolved(projection, row, event, key);
    if (next === row) continue;
    if (options.freeze) deepFreeze(next);
    // Nearly all events change one row, so it can be written at once.
    if (isFirst && steps[index + 1]?.event !== event) memory.set(text, key, next);
    else pending.push({ step, row: next });
  }
  settle();
  return steps.length;
}

/**
 * Like {@link fold}, but continues after an error: the row of the failed step stays as it is. `blocked` holds the key texts of rows that
 * wait for an earlier event. With `block`, a failed step blocks its row, and later events of a blocked row are not folded.
 *
 * @param leaveOut receives the steps that were not folded: failures, and steps that wait behind one (without an error)
 * @returns how many steps were handled: all of them without a pace
 */
export function foldAround(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  options: FoldOptions & { readonly block: boolean; readonly blocked: Set<string> },
  leaveOut: (step: FoldStep, error: RefoldError | null) => void,
): number {
  const { freeze, pace } = options;
  for (const [index, step] of steps.entries()) {
    const before = steps[index - 1]?.event;
    if (before && before !== step.event && pace?.after(before)) return index;
    if (options.blocked.has(step.text)) {
      leaveOut(step, null);
      continue;
    }
    try {
      fold(projection, [step], memory, { freeze });
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      leaveOut(step, error);
      if (options.block) options.blocked.add(step.text);
    }
  }
  return steps.length;
}

/** In development: checks what upcasters returned, and freezes the event. */
function prepare(projection: Projection, event: RecordedEvent): void {
  const problem = invalidUpcast(projection.families, event);
  if (problem !== null)
    throw evolveFailed(projection, event, 'upcast', new Error(`the result does not match the schema: ${problem}`));
  deepFreeze(event);
}

function evolved(projection: Projection, row: Row | null, event: RecordedEvent, key: RowKey): Row | null {
  try {
    return projection.apply(row, event, key);
  } catch (cause) {
    throw evolveFailed(projection, event, 'evolve', cause, row);
  }
}
