import { ConcurrencyConflict, InvalidInput, RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { familyStoredAs } from '../../events/event-names.ts';
import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import type { AppendOutcome, StreamVersion, WrittenAppend } from './append-statement.ts';

export interface AppendResult {
  /** Position of the last event. A read model that has reached it shows the append. */
  readonly position: GlobalPosition;
  readonly firstPosition: GlobalPosition;
  /** The version of each stream after the append. */
  readonly streams: readonly StreamVersion[];
  readonly events: readonly RecordedEvent[];
  /** True if the idempotency key was used before: nothing was written now, and this is the earlier result. */
  readonly duplicate: boolean;
}

/** The position of the last event that these appends wrote; undefined if they wrote none. */
export function lastWritten(outcomes: readonly AppendOutcome[]): GlobalPosition | undefined {
  let last: GlobalPosition | undefined;
  for (const outcome of outcomes) {
    const position = outcome.kind === 'written' ? outcome.positions.at(-1) : undefined;
    if (position !== undefined) last = laterPosition(last ?? position, position);
  }
  return last;
}

/** The number of events that these appends wrote. */
export function eventsWritten(outcomes: readonly AppendOutcome[]): number {
  let events = 0;
  for (const outcome of outcomes) if (outcome.kind === 'written') events += outcome.positions.length;
  return events;
}

/** @throws InvalidInput if an idempotency key was used for another request before */
export function refuseOtherRequest(before: WrittenAppend, fingerprint: string | undefined): void {
  const { idempotencyFingerprint: kept } = before;
  if (kept === undefined || fingerprint === undefined || kept === fingerprint) return;
  const message = 'this key was used with another input before; a key belongs to one request. Send another key.';
  throw new InvalidInput('BAD_USER_INPUT', 'The idempotency key', [{ path: ['idempotencyKey'], message }]);
}

export function conflictOf({ part, actual }: AppendOutcome & { kind: 'conflict' }): ConcurrencyConflict {
  const { family, streamId, expectedVersion } = part;
  if (expectedVersion === 'any') throw new Error("an append that expects 'any' version is never refused"); // refold.append
  return new ConcurrencyConflict({ family, streamId, expected: expectedVersion, actual });
}

/** The key belongs to a workflow step. Another process ran the same step in the meantime and recorded that it writes nothing. */
export function decidedOtherwise(): RefoldError {
  return new RefoldError(
    'PROCESSOR_FENCED',
    'Another process has run this step in the meantime and wrote no event. Run it again.',
  );
}

export function resultOf(
  families: ReadonlyMap<string, EventFamily>,
  outcome: AppendOutcome & { kind: 'written' | 'duplicate' },
  events: readonly RecordedEvent[],
): AppendResult {
  const { positions, streams, kind } = outcome;
  const [firstPosition] = positions;
  const position = positions.at(-1);
  if (firstPosition === undefined || position === undefined) throw new Error('an append has at least one event'); // checkAppend refuses empty appends
  return {
    position,
    firstPosition,
    // The result of an earlier append has the names of the log.
    streams: streams.map((stream) => ({
      ...stream,
      family: familyStoredAs(families, stream.family)?.name ?? stream.family,
    })),
    events,
    duplicate: kind === 'duplicate',
  };
}
