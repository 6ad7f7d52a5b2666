import type { StreamState } from '../../commands/define-state.ts';
import { InvalidInput } from '../../errors.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import type { Queryable } from '../postgres/statement.ts';
import { readStream } from './read-stream.ts';
import { recordedEvent } from './recorded-event.ts';
import { readStart, streamPositionAt } from './stream-snapshots.ts';

export interface StateOfOptions {
  /**
   * As of when: a stream position (number), a position of the log (`GlobalPosition`), or a time (`Date`, or ISO 8601 text). What was
   * appended or recorded up to then counts; so a stream position beyond the last one gives the latest state.
   * @default the latest state
   */
  readonly at?: number | GlobalPosition | Date | string;
}

/** A stream's state, and what it was made of. */
export interface StateOf<S = unknown> {
  readonly state: S;
  /** The stream position of the last event that is in it; 0 where there is none. */
  readonly version: number;
  /** Of that event in the log; `beginning` where there is none. */
  readonly position: GlobalPosition;
  /** The version of the snapshot from which it was folded; 0 where it was folded from the first event. */
  readonly snapshotVersion: number;
}

// As the pages of readStream.
const pageSize = 1000;

export async function readState<F extends EventFamily, S>(
  target: Queryable,
  declared: StreamState<F, S>,
  streamId: string,
  { at }: StateOfOptions = {},
): Promise<StateOf<S>> {
  const to = at === undefined ? Number.MAX_SAFE_INTEGER : await lastAt(target, declared.family, streamId, at);
  const snapshots = declared.snapshots;
  let state = declared.initial();
  let version = 0;
  let position: GlobalPosition = beginning;
  let snapshotVersion = 0;
  let full = true;
  if (snapshots) {
    const stream = { family: declared.family.name, streamId, fingerprint: snapshots.fingerprint, to };
    const { snapshot, events } = await readStart(target, stream, pageSize);
    if (snapshot) {
      state = snapshots.decode(snapshot.state) as S; // the same code has encoded it
      version = snapshotVersion = snapshot.streamPosition;
      position = globalPosition(snapshot.position);
    }
    for (const row of events) {
      const event = recordedEvent(declared.family, row);
      state = declared.apply(state, event);
      version = event.streamPosition;
      position = event.position;
    }
    full = events.length === pageSize;
  }
  if (full) {
    for await (const event of readStream(target, declared.family, streamId, { from: version + 1, to })) {
      state = declared.apply(state, event);
      version = event.streamPosition;
      position = event.position;
    }
  }
  return { state, version, position, snapshotVersion };
}

async function lastAt(
  target: Queryable,
  { name }: EventFamily,
  streamId: string,
  at: NonNullable<StateOfOptions['at']>,
): Promise<number> {
  if (typeof at === 'bigint') return streamPositionAt(target, name, streamId, { position: at });
  if (typeof at === 'number') {
    if (Number.isSafeInteger(at) && at >= 0) return at;
    throw badAt(`a whole number from 0 on is needed, found ${at}.`);
  }
  const text = at instanceof Date ? (Number.isNaN(at.getTime()) ? 'an invalid Date' : at.toISOString()) : at;
  // With a zone, or it would be another time on another server.
  if (
    typeof text !== 'string' ||
    !/^\d{4}-\d\d-\d\d[T ].*(Z|[+-]\d\d(:?\d\d)?)$/.test(text) ||
    Number.isNaN(Date.parse(text))
  )
    throw badAt(`a time with its zone is needed, such as '2026-01-31T12:00:00Z', found ${String(text)}.`);
  return streamPositionAt(target, name, streamId, { time: text });
}

function badAt(message: string): InvalidInput {
  return new InvalidInput('BAD_USER_INPUT', 'The options of stateOf', [{ path: ['at'], message }]);
}
