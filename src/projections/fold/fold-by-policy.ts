import type { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { EventPace } from '../../events/event-pace.ts';
import type { Projection, RowKey } from '../projection/projection.ts';
import { type Discarded, eventsToFold, stepsToFold } from './discarded.ts';
import { type FoldOptions, type FoldStep, fold, foldAround, foldSteps, type RowMemory } from './fold.ts';

/** An event that the declared policy leaves out of a row. */
export interface LeftOutEvent {
  readonly event: RecordedEvent;
  /** Null if the key could not be computed. */
  readonly key: RowKey | null;
  /** Null if the event waits behind an earlier one of its row. */
  readonly error: RefoldError | null;
}

/** Receives what the policy leaves out. Not called with `stop`: the error is thrown. */
export type LeaveOut = (leftOut: LeftOutEvent) => void;

/**
 * The steps of these events under the declared policy, without discarded ones.
 *
 * @param onEvent called after each event; true ends the work early
 * @throws RefoldError `EVOLVE_FAILED` if a key can't be computed, with the policy `stop`
 */
export function stepsByPolicy(
  projection: Projection,
  events: readonly RecordedEvent[],
  discarded: Discarded,
  leaveOut: LeaveOut,
  onEvent?: (event: RecordedEvent) => boolean,
): readonly FoldStep[] {
  const onKeyFailure = (event: RecordedEvent, error: RefoldError): void => {
    if (projection.onError.policy === 'stop') throw error;
    leaveOut({ event, key: null, error });
  };
  return stepsToFold(foldSteps(projection, eventsToFold(events, discarded), onKeyFailure, onEvent), discarded);
}

/**
 * Folds the steps, in order, into the rows in memory, under the declared policy. It is the same for every fold of a version: at the head, with
 * an append, in a rebuild, a verification or a row's history.
 *
 * - `stop`: the first failure is thrown; memory holds the result of the events before it.
 * - `skip`: the failed event is left out of its row.
 * - `dead-letter`: so are the later events of that row, whose key is then in `blocked`.
 *
 * @param options `blocked` holds the key texts of rows that wait for an earlier event
 * @returns how many steps were handled: all of them without a pace
 * @throws RefoldError `EVOLVE_FAILED` with the policy `stop`
 */
export function foldByPolicy(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  { leaveOut, ...options }: FoldOptions & { readonly blocked: Set<string>; readonly leaveOut: LeaveOut },
): number {
  const { policy } = projection.onError;
  if (policy === 'stop') return fold(projection, steps, memory, options);
  const around = { ...options, block: policy === 'dead-letter' };
  return foldAround(projection, steps, memory, around, ({ event, key }, error) => leaveOut({ event, key, error }));
}

/** Like {@link foldByPolicy}, with turns for the event loop. @param options `pace`: one that has been started. @default a new one */
export async function foldInTurns(
  projection: Projection,
  steps: readonly FoldStep[],
  memory: RowMemory,
  { pace = startedPace(), ...options }: Parameters<typeof foldByPolicy>[3],
): Promise<void> {
  for (let rest = steps; rest.length > 0; ) {
    const folded = foldByPolicy(projection, rest, memory, { ...options, pace });
    const last = rest[folded - 1]?.event;
    rest = rest.slice(folded);
    if (rest.length > 0 || (last && pace.after(last))) await pace.turn();
  }
}

function startedPace(): EventPace {
  const pace = new EventPace();
  pace.start();
  return pace;
}
