import { ConcurrencyConflict, InvalidInput, invalidDeclaration } from '../errors.ts';
import type { EventMetadata, ExpectedVersion, RecordedEvent } from '../events/event.ts';
import type { EventFamily, NewEventOf, RecordedEventOf } from '../events/event-family.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import { type AppendQueueOptions, createAppendQueue } from './append-queue.ts';
import { type CheckedAppend, checkAppend, type StreamAppend } from './append-request.ts';
import { type AppendOutcome, appendBatch, findAppend, type StreamVersion } from './append-statement.ts';
import type { Database } from './database.ts';
import { readHead, readHorizon } from './horizon.ts';
import { decodePage } from './page-decoder.ts';
import { createReadAhead } from './read-ahead.ts';
import { copyPage, type EventPage, knownFamily, type ReadAllOptions, readPositions } from './read-events.ts';
import { type ReadStreamOptions, readStream, streamVersion } from './read-stream.ts';
import type { Queryable } from './statement.ts';

export interface AppendRequest<F extends EventFamily = EventFamily> {
  readonly family: F;
  readonly streamId: string;
  readonly events: readonly NewEventOf<F>[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
  /** Names the append: a second one with the same key writes nothing and gives the first one's result. Up to 1 KiB. */
  readonly idempotencyKey?: string;
  /** Goes with each of the events; an event's own keys win. */
  readonly metadata?: EventMetadata;
}

export interface AppendToStreamsRequest {
  readonly streams: readonly StreamAppend[];
  readonly idempotencyKey?: string;
  readonly metadata?: EventMetadata;
}

export interface AppendResult {
  /** Position of the last event; read models that have reached it show the append. */
  readonly position: GlobalPosition;
  readonly firstPosition: GlobalPosition;
  /** Each stream's version after the append. */
  readonly streams: readonly StreamVersion[];
  readonly events: readonly RecordedEvent[];
  /** The idempotency key had been used: nothing was written now, and this is the result of then. */
  readonly duplicate: boolean;
}

/** What became of one of several appends that were sent together. */
export type AppendVerdict =
  | { readonly kind: 'written' | 'duplicate' }
  | { readonly kind: 'refused'; readonly error: ConcurrencyConflict | InvalidInput };

/** The event log of a database. */
export interface EventLog {
  readonly families: ReadonlyMap<string, EventFamily>;
  /**
   * Appends events to one stream; all of them or none.
   *
   * @param within a transaction to append in, instead of joining other callers' appends.
   * @throws ConcurrencyConflict when the stream is not at the expected version; {@link InvalidInput} before anything is sent.
   */
  append<F extends EventFamily>(request: AppendRequest<F>, within?: Queryable): Promise<AppendResult>;
  /** Appends to several streams at once; to all of them or to none. */
  appendToStreams(request: AppendToStreamsRequest, within?: Queryable): Promise<AppendResult>;
  /**
   * Sends independent appends as one statement: each is written or refused for itself, and the positions of what is written
   * are in the order of the list. For imports; a failure of the database fails them all.
   */
  appendInOrder(requests: readonly AppendRequest[]): Promise<readonly AppendVerdict[]>;
  /** What an append with this idempotency key wrote; undefined where there was none. */
  findAppend(idempotencyKey: string): Promise<AppendResult | undefined>;
  /** The events of a stream, in its order or backwards. Read page by page, so a stream of any length fits. */
  readStream<F extends EventFamily>(
    family: F,
    streamId: string,
    options?: ReadStreamOptions,
  ): AsyncIterable<RecordedEventOf<F>>;
  /** How many events the stream has; 0 where it does not exist. */
  streamVersion(family: EventFamily, streamId: string): Promise<number>;
  /** The position up to which the log is complete: nothing at or below can still appear to later statements. */
  horizon(): Promise<GlobalPosition>;
  /** The last position that was drawn. */
  head(): Promise<GlobalPosition>;
  /** The events at these positions, in their order. */
  readAt(positions: readonly GlobalPosition[]): Promise<RecordedEvent[]>;
  /** A page of the whole log, by filter, in its order, up to a horizon. */
  readAll(options: ReadAllOptions): Promise<EventPage>;
}

export function createEventLog(
  db: Database,
  families: readonly EventFamily[],
  options: AppendQueueOptions = {},
): EventLog {
  const byName = new Map<string, EventFamily>();
  for (const family of families) {
    const same = byName.get(family.name);
    if (same && same !== family)
      throw invalidDeclaration(`event family '${family.name}'`, 'is declared twice; give one of them another name.');
    byName.set(family.name, family);
  }
  const readAll = createReadAhead(
    (readOptions) => copyPage(db, byName, readOptions),
    (lines) => decodePage(lines, byName),
  );
  const queue = createAppendQueue(db, options);

  async function appendToStreams(
    { streams, ...appendOptions }: AppendToStreamsRequest,
    within?: Queryable,
  ): Promise<AppendResult> {
    for (const { family } of streams) knownFamily(byName, family.name);
    const checked = await checkAppend(streams, appendOptions);
    const outcome = within ? await alone(within, checked) : await queue.append(checked.prepared);
    switch (outcome.kind) {
      case 'conflict':
        throw conflictOf(outcome);
      case 'written':
        return resultOf(outcome, checked.recorded(outcome));
      case 'duplicate':
        return resultOf(outcome, await readPositions(within ?? db, byName, outcome.positions));
    }
  }

  async function checked({ family, streamId, events, expectedVersion = 'any', ...appendOptions }: AppendRequest) {
    knownFamily(byName, family.name);
    try {
      return await checkAppend([{ family, streamId, events, expectedVersion }], appendOptions);
    } catch (error) {
      if (error instanceof InvalidInput) return error;
      throw error;
    }
  }

  async function appendInOrder(requests: readonly AppendRequest[]): Promise<readonly AppendVerdict[]> {
    const checks = await Promise.all(requests.map(checked));
    const sound = checks.flatMap((check) => (check instanceof InvalidInput ? [] : [check.prepared]));
    const outcomes = (sound.length === 0 ? [] : await appendBatch(db, sound)).values();
    return checks.map((check) => {
      if (check instanceof InvalidInput) return { kind: 'refused', error: check };
      const outcome = outcomes.next().value as AppendOutcome; // one for each that is sound
      return outcome.kind === 'conflict' ? { kind: 'refused', error: conflictOf(outcome) } : { kind: outcome.kind };
    });
  }

  return {
    families: byName,
    appendInOrder,
    append: ({ family, streamId, events, expectedVersion = 'any', ...appendOptions }, within) =>
      appendToStreams(
        { streams: [{ family, streamId, events, expectedVersion } as StreamAppend], ...appendOptions },
        within,
      ), // events and family agree
    appendToStreams,
    async findAppend(idempotencyKey) {
      const written = await findAppend(db, idempotencyKey);
      if (!written) return undefined;
      return resultOf({ kind: 'duplicate', ...written }, await readPositions(db, byName, written.positions));
    },
    readStream: <F extends EventFamily>(family: F, streamId: string, readOptions?: ReadStreamOptions) =>
      readStream(db, family, streamId, readOptions) as AsyncIterable<RecordedEventOf<F>>, // written only after its schema took it
    streamVersion: (family, streamId) => streamVersion(db, family.name, streamId),
    horizon: () => readHorizon(db),
    head: () => readHead(db),
    readAt: (positions) => readPositions(db, byName, positions),
    readAll,
  };
}

async function alone(target: Queryable, { prepared }: CheckedAppend): Promise<AppendOutcome> {
  const [outcome] = await appendBatch(target, [prepared]);
  return outcome as AppendOutcome; // one for each append
}

function conflictOf({ part, actual }: AppendOutcome & { kind: 'conflict' }): ConcurrencyConflict {
  const { family, streamId, expectedVersion } = part;
  if (expectedVersion === 'any') throw new Error("an append that expects 'any' version is never refused"); // refold.append
  return new ConcurrencyConflict({ family, streamId, expected: expectedVersion, actual });
}

function resultOf(
  outcome: AppendOutcome & { kind: 'written' | 'duplicate' },
  events: readonly RecordedEvent[],
): AppendResult {
  const { positions, streams, kind } = outcome;
  const [firstPosition] = positions;
  const position = positions.at(-1);
  if (firstPosition === undefined || position === undefined) throw new Error('an append has at least one event'); // checked before
  return { position, firstPosition, streams, events, duplicate: kind === 'duplicate' };
}
