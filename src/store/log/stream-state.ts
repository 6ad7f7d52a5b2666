import type { StreamState } from '../../commands/define-state.ts';
import { InvalidInput } from '../../errors.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { EventPace } from '../../events/event-pace.ts';
import { beginning, type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { isFinerThanMicroseconds } from '../../projections/columns/calendar-values.ts';
import type { Database } from '../postgres/database.ts';
import type { Queryable } from '../statements/statement.ts';
import { knownFamily } from './read-events.ts';
import { lastOfStream, readStream } from './read-stream.ts';
import { recordedEvent } from './recorded-event.ts';
import { readStart, streamPositionAt } from './stream-snapshots.ts';

export interface StateOfOptions {
  /**
   * The moment to read: a stream position (number), a global position (`GlobalPosition`), or a time (`Date`, or ISO 8601 text). Includes
   * everything up to that moment. A stream position after the last event returns the latest state.
   * @default the latest state
   */
  readonly at?: number | GlobalPosition | Date | string;
}

/** A stream's state, and the events and snapshot that it was computed from. */
export interface StateOf<S = unknown> {
  readonly state: S;
  /** The stream position of the last event in the state; 0 if there is none. */
  readonly version: number;
  /** The global position of that event; `beginning` if there is none. */
  readonly position: GlobalPosition;
  /** The stream position of the snapshot that the fold started from; 0 if it started from the first event. */
  readonly snapshotVersion: number;
}

/** A stream whose state was read. */
export interface FoldedStream {
  readonly state: StreamState;
  readonly streamId: string;
  /** How many events were read for it. */
  readonly events: number;
}

/** Reads states, and reports each of them. */
export function createStateReads(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  onFolded: (folded: FoldedStream) => void = () => {},
) {
  const report = (state: StreamState, streamId: string, { version, snapshotVersion }: StateOf) =>
    onFolded({ state, streamId, events: state.folds ? version - snapshotVersion : 0 });
  return {
    async stateOf<F extends EventFamily, S>(state: StreamState<F, S>, streamId: string, options?: StateOfOptions) {
      knownFamily(families, state.family.name);
      const found = await readState(db, state, streamId, options);
      report(state as StreamState, streamId, found);
      return found;
    },
    async statesOf(streams: readonly { readonly state: StreamState; readonly streamId: string }[]) {
      const found = await readStates(db, families, streams);
      for (const [index, { state, streamId }] of streams.entries()) report(state, streamId, found[index] as StateOf); // one for each stream
      return found;
    },
  };
}

// The same as in readStream.
const pageSize = 1000;

async function readState<F extends EventFamily, S>(
  target: Queryable,
  declared: StreamState<F, S>,
  streamId: string,
  { at }: StateOfOptions = {},
): Promise<StateOf<S>> {
  const to = at === undefined ? Number.MAX_SAFE_INTEGER : await lastAt(target, declared.family, streamId, at);
  if (!declared.folds) {
    const last = await lastOfStream(target, declared.family.storedName, streamId, to);
    return { state: declared.initial(), ...last, snapshotVersion: 0 };
  }
  const snapshots = declared.snapshots;
  let state = declared.initial();
  let version = 0;
  let position: GlobalPosition = beginning;
  let snapshotVersion = 0;
  let full = true;
  if (snapshots) {
    const stream = { family: declared.family.storedName, streamId, fingerprint: snapshots.fingerprint, to };
    const { snapshot, events, ...page } = await readStart(target, stream, pageSize);
    if (snapshot) {
      state = snapshots.decode(snapshot.state) as S; // encoded by the same code
      version = snapshotVersion = snapshot.streamPosition;
      position = globalPosition(snapshot.position);
    }
    const pace = new EventPace();
    pace.start();
    for (const row of events) {
      if (pace.isDue) await pace.turn();
      const event = recordedEvent(declared.family, row);
      state = declared.apply(state, event);
      version = event.streamPosition;
      position = event.position;
    }
    full = page.full;
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

/** The latest states of several streams, from one snapshot of the database. */
async function readStates(
  db: Database,
  families: ReadonlyMap<string, EventFamily>,
  streams: readonly { readonly state: StreamState; readonly streamId: string }[],
): Promise<readonly StateOf[]> {
  for (const { state } of streams) knownFamily(families, state.family.name);
  const read = async (target: Queryable) => {
    const states: StateOf[] = [];
    for (const { state, streamId } of streams) states.push(await readState(target, state, streamId));
    return states;
  };
  // One stream needs no snapshot: a later page only adds later events.
  return streams.length === 1 ? read(db) : db.transaction(read, { isolation: 'repeatable read', readOnly: true });
}

async function lastAt(
  target: Queryable,
  { storedName: name }: EventFamily,
  streamId: string,
  at: NonNullable<StateOfOptions['at']>,
): Promise<number> {
  if (typeof at === 'bigint') return streamPositionAt(target, name, streamId, { position: at });
  if (typeof at === 'number') {
    if (Number.isSafeInteger(at) && at >= 0) return at;
    throw badAt(`a whole number from 0 on is needed, found ${at}.`);
  }
  const text = at instanceof Date ? (Number.isNaN(at.getTime()) ? 'an invalid Date' : at.toISOString()) : at;
  // A zone is required: without it, the time would depend on the server.
  if (
    typeof text !== 'string' ||
    !/^\d{4}-\d\d-\d\d[T ].*(Z|[+-]\d\d(:?\d\d)?)$/.test(text) ||
    Number.isNaN(Date.parse(text))
  )
    throw badAt(`a time with its zone is needed, such as '2026-01-31T12:00:00Z', found ${String(text)}.`);
  if (isFinerThanMicroseconds(text)) throw badAt(`times are kept to the microsecond, found ${text}.`);
  return streamPositionAt(target, name, streamId, { time: text });
}

function badAt(message: string): InvalidInput {
  return new InvalidInput('BAD_USER_INPUT', 'The options of stateOf', [{ path: ['at'], message }]);
}
