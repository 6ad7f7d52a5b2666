import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { deepFreeze } from '../columns/deep-freeze.ts';
import type { Row } from '../columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../declaration/projection.ts';
import { evolveFailed, isEvolveFailure } from './fold-failures.ts';

/** What the fold reads rows from and writes them to: memory, in front of the read table. */
export interface RowMemory {
  /** The row, null where there is none; undefined where memory does not know. */
  get(text: string): Row | null | undefined;
  set(text: string, key: RowKey, row: Row | null): void;
}

/** One event meeting one row. */
export interface FoldStep {
  readonly event: RecordedEvent;
  readonly key: RowKey;
  /** The key's text, as in {@link keyText}. */
  readonly text: string;
}

/** Which event meets which row, in the order of the log. An event that touches many rows makes as many steps; a key named twice is one row. */
export function foldSteps(
  projection: Projection,
  events: readonly RecordedEvent[],
  onKeyFailure: (event: RecordedEvent, error: RefoldError) => void = (_, error) => {
    throw error;
  },
): FoldStep[] {
  const steps: FoldStep[] = [];
  for (const event of events) {
    try {
      const keys = projection.keysOf(event);
      if (keys.length === 1)
        steps.push({ event, key: keys[0] as RowKey, text: keyText(keys[0] as RowKey) }); // one key: no duplicates to look for
      else for (const [text, key] of new Map(keys.map((key) => [keyText(key), key]))) steps.push({ event, key, text });
    } catch (cause) {
      onKeyFailure(event, evolveFailed(projection, event, 'key', cause));
    }
  }
  return steps;
}

/**
 * Folds the steps, in their order, into the rows of memory. Every row that they touch must be known to memory before.
 * An event takes effect on all its rows or on none: when one fails, memory holds what the events before it made.
 * With `freeze`, rows and events are deep-frozen, so that an `evolve` that changes them fails where it does.
 *
 * @throws RefoldError `EVOLVE_FAILED` naming projection, event type, position and stream.
 */
export function fold(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  options: { readonly freeze: boolean },
): void {
  let pending: { step: FoldStep; row: Row | null }[] = [];
  const settle = () => {
    for (const { step, row } of pending) memory.set(step.text, step.key, row);
    pending = [];
  };
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index] as FoldStep; // index < length
    const { event, key, text } = step;
    const isFirst = steps[index - 1]?.event !== event;
    if (isFirst && pending.length > 0) settle();
    const row = memory.get(text);
    if (row === undefined) throw new Error(`fold: row ${text} of ${projection.id} was not loaded`);
    if (options.freeze) deepFreeze(event);
    const next = evolved(projection, row, event, key);
    if (next === row) continue;
    if (options.freeze) deepFreeze(next);
    // Nearly all events touch one row, which has nothing to wait for.
    if (isFirst && steps[index + 1]?.event !== event) memory.set(text, key, next);
    else pending.push({ step, row: next });
  }
  settle();
}

/**
 * As {@link fold}, but an event that fails on a row leaves that row as it is, and the fold goes on. `blocked` holds the rows (their
 * keys' texts) that wait for an earlier event: with `block`, a failure adds its row, and later events of a blocked row are set aside.
 *
 * @returns what was not folded, in order: failures, and events set aside behind one (without an error).
 */
export function foldAround(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  options: { readonly freeze: boolean; readonly block: boolean; readonly blocked: Set<string> },
): UnfoldedStep[] {
  const unfolded: UnfoldedStep[] = [];
  for (const step of steps) {
    if (options.blocked.has(step.text)) {
      unfolded.push({ step, error: null });
      continue;
    }
    try {
      fold(projection, [step], memory, options);
    } catch (error) {
      if (!isEvolveFailure(error)) throw error;
      unfolded.push({ step, error });
      if (options.block) options.blocked.add(step.text);
    }
  }
  return unfolded;
}

/** A step that was not folded; its error, or null where it waits behind an earlier one. */
export interface UnfoldedStep {
  readonly step: FoldStep;
  readonly error: RefoldError | null;
}

function evolved(projection: Projection, row: Row | null, event: RecordedEvent, key: RowKey): Row | null {
  try {
    return projection.apply(row, event, key);
  } catch (cause) {
    throw evolveFailed(projection, event, 'evolve', cause, row);
  }
}
