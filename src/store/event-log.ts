import type { StreamState } from '../commands/define-state.ts';
import { type ConcurrencyConflict, InvalidInput, type RefoldError } from '../errors.ts';
import type { EventMetadata, ExpectedVersion } from '../events/event.ts';
import type { EventFamily, NewEventOf, RecordedEventOf } from '../events/event-family.ts';
import { expectDistinctNames } from '../events/event-names.ts';
import type { OnSlowEvent } from '../events/event-pace.ts';
import type { GlobalPosition } from '../events/global-position.ts';
import { isTracing } from '../tracing.ts';
import { type AppendLocks, type AppendQueueOptions, createAppendQueue } from './append-queue/append-queue.ts';
import { createInlineAppends, type InlineAppends, type InlineAppendsOptions } from './inline/inline-appends.ts';
import { gateLock } from './inline/inline-locks.ts';
import { createUntilChecked, uncheckedError } from './inline/until-checked.ts';
import { advisoryLock, logLocksOf, readHeld } from './log/append-locks.ts';
import { type AppendOptions, type CheckedAppend, checkAppend, type StreamAppend } from './log/append-request.ts';
import {
  type AppendResult,
  conflictOf,
  decidedOtherwise,
  eventsWritten,
  lastWritten,
  refuseOtherRequest,
  resultOf,
} from './log/append-result.ts';
import { type AppendOutcome, appendBatch, findAppend } from './log/append-statement.ts';
import { createLogReads, type LogReads } from './log/log-reads.ts';
import { knownFamily, readPositions } from './log/read-events.ts';
import { type ReadStreamOptions, readStream, streamVersion } from './log/read-stream.ts';
import { createStateReads, type FoldedStream, type StateOf, type StateOfOptions } from './log/stream-state.ts';
import type { Database } from './postgres/database.ts';
import { unknownOutcome } from './postgres/database-errors.ts';
import type { Queryable } from './statements/statement.ts';
import { tracedAppend, tracedWrite } from './traced-appends.ts';

export interface AppendRequest<F extends EventFamily = EventFamily> {
  readonly family: F;
  readonly streamId: string;
  readonly events: readonly NewEventOf<F>[];
  /** @default 'any' */
  readonly expectedVersion?: ExpectedVersion;
  /** Identifies the append. A second append with the same key writes nothing and returns the first one's result. At most 1 KiB. */
  readonly idempotencyKey?: string;
  /**
   * A fingerprint of the request, such as a hash. The same key with another fingerprint is refused. Set it for keys that clients choose:
   * such keys are deleted after `runtime.idempotencyDays`. Keys without a fingerprint are kept as long as the log.
   */
  readonly idempotencyFingerprint?: string;
  /** Added to each event's metadata. If an event sets the same key, the event's value wins. */
  readonly metadata?: EventMetadata;
}

export interface AppendToStreamsRequest {
  readonly streams: readonly StreamAppend[];
  readonly idempotencyKey?: string;
  /**
   * A fingerprint of the request, such as a hash. The same key with another fingerprint is refused. Set it for keys that clients choose:
   * such keys are deleted after `runtime.idempotencyDays`. Keys without a fingerprint are kept as long as the log.
   */
  readonly idempotencyFingerprint?: string;
  readonly metadata?: EventMetadata;
}

/** The outcome of one append of a list that was sent together. */
export type AppendVerdict =
  | { readonly kind: 'written' | 'duplicate' }
  | { readonly kind: 'refused'; readonly error: ConcurrencyConflict | InvalidInput | RefoldError };

/** The event log of a database. */
export interface EventLog extends LogReads {
  readonly families: ReadonlyMap<string, EventFamily>;
  /**
   * Appends events to one stream: all of them or none.
   *
   * @param within a transaction to append in. Without it, the append may share a batch with appends of other callers. Inline projections
   *   fold in this transaction too. It must then be READ COMMITTED, and should be short because other appends to the same rows wait for it.
   * @throws ConcurrencyConflict if the stream is not at the expected version. {@link InvalidInput} if the request is invalid, RefoldError
   *   `TEXT_TOO_LONG` if a text does not fit an indexed column; nothing is sent. `EVOLVE_FAILED` if an inline projection with
   *   `onError: 'stop'` cannot fold an event; `DATABASE_UNAVAILABLE` if nothing was written; `UNIQUE_CHECK_UNAVAILABLE` if nothing can check its unique values; `OUTCOME_UNKNOWN` if the events may have been written: retry with the same idempotency key.
   */
  append<F extends EventFamily>(request: AppendRequest<F>, within?: Queryable): Promise<AppendResult>;
  /** Appends to several streams: to all of them or to none. */
  appendToStreams(request: AppendToStreamsRequest, within?: Queryable): Promise<AppendResult>;
  /**
   * Sends independent appends as one statement. Each append is written or refused on its own. Positions follow the order of the list. Meant
   * for imports. If the database fails, all appends of the list fail.
   */
  appendInOrder(requests: readonly AppendRequest[]): Promise<readonly AppendVerdict[]>;
  /** What an append with this idempotency key wrote; undefined if there was none. @throws InvalidInput if it had another fingerprint */
  findAppend(idempotencyKey: string, idempotencyFingerprint?: string): Promise<AppendResult | undefined>;
  /** The events of a stream, forward or backward. Reads page by page, so a stream can have any length. */
  readStream<F extends EventFamily>(
    family: F,
    streamId: string,
    options?: ReadStreamOptions,
  ): AsyncIterable<RecordedEventOf<F>>;
  /**
   * The state of a stream, now or as of a stream position, a global position or a time. Old payloads are upcast first. If the declaration
   * keeps snapshots, they only make this faster.
   *
   * @throws InvalidInput if `at` is none of these
   * @example
   * const { state, version } = await log.stateOf(cartState, 'c1', { at: '2026-01-31T12:00:00Z' });
   */
  stateOf<F extends EventFamily, S>(
    state: StreamState<F, S>,
    streamId: string,
    options?: StateOfOptions,
  ): Promise<StateOf<S>>;
  /** The latest states of several streams, all of one moment: what one append wrote is in all of them or in none. */
  statesOf(streams: readonly { readonly state: StreamState; readonly streamId: string }[]): Promise<readonly StateOf[]>;
  /** The number of events in the stream; 0 if it does not exist. */
  streamVersion(family: EventFamily, streamId: string): Promise<number>;
}

export interface EventLogOptions extends AppendQueueOptions, Pick<AppendOptions, 'checkTexts'> {
  /** The inline projections that commit with the events appended here. @default none */
  readonly inline?: InlineAppendsOptions;
  /** Called with the last committed position, before a notification arrives. Not called for appends within a caller's transaction. */
  readonly onAppended?: (position: GlobalPosition) => void;
  /** Called after each statement of appends. */
  readonly onSent?: (sent: SentAppends) => void;
  /** Called after the state of a stream was read. */
  readonly onFolded?: (folded: FoldedStream) => void;
  /** Called with an event of the log whose upcasters took a second or longer. */
  readonly onSlowEvent?: OnSlowEvent;
}

/** One statement of appends, as it ended. */
export interface SentAppends {
  readonly seconds: number;
  /** One for each append; all have `failed` with the statement. */
  readonly outcomes: readonly (AppendOutcome['kind'] | 'failed')[];
  /** The number of events written. */
  readonly events: number;
  /** Why the statement failed. */
  readonly error?: unknown;
}

export function createEventLog(
  db: Database,
  families: readonly EventFamily[],
  options: EventLogOptions = {},
): EventLog {
  expectDistinctNames(families);
  const byName = new Map(families.map((family) => [family.name, family]));
  const inline = options.inline && createInlineAppends(options.inline);
  const whenChecked = createUntilChecked(options.lockTimeoutMs);
  const { unlessStalled = (work) => work() } = options;
  const send = async (batch: readonly CheckedAppend[], lockTimeoutMs?: number) => {
    const startedAt = performance.now();
    const report = (sent: Omit<SentAppends, 'seconds'>) =>
      options.onSent?.({ seconds: (performance.now() - startedAt) / 1000, ...sent });
    const prepared = batch.map((one) => one.prepared);
    const write = () =>
      inline?.concerns(batch) ? inline.append(batch, lockTimeoutMs) : appendBatch(db, prepared, lockTimeoutMs);
    const writeUnlessStalled = () => unlessStalled(write);
    const writing = isTracing ? tracedWrite(batch, writeUnlessStalled) : writeUnlessStalled();
    const outcomes = await writing.catch((error: unknown) => {
      const unchecked = uncheckedError(error, byName.values());
      if (!unchecked) report({ outcomes: batch.map(() => 'failed'), events: 0, error });
      throw unchecked ?? unknownOutcome(error);
    });
    report({ outcomes: outcomes.map(({ kind }) => kind), events: eventsWritten(outcomes) });
    const last = lastWritten(outcomes);
    if (last !== undefined) options.onAppended?.(last);
    return outcomes;
  };
  const queue = createAppendQueue(send, locksOfAppends(db, inline), options);

  const appendToStreams: EventLog['appendToStreams'] = (request, within) =>
    isTracing ? tracedAppend(request, (given) => appendChecked(given, within)) : appendChecked(request, within);

  async function appendChecked(
    { streams, ...appendOptions }: AppendToStreamsRequest & AppendOptions,
    within?: Queryable,
  ): Promise<AppendResult> {
    for (const { family } of streams) knownFamily(byName, family.name);
    const checked = await checkAppend(streams, { ...appendOptions, checkTexts: options.checkTexts });
    // What has begun ends with the caller's transaction, but no more is begun that would not be committed.
    if (within) await unlessStalled(async () => {});
    const outcome = within ? await alone(within, checked) : await whenChecked(() => queue.append(checked));
    switch (outcome.kind) {
      case 'refused':
        throw outcome.error;
      case 'conflict':
        throw conflictOf(outcome);
      case 'written':
        return resultOf(byName, outcome, checked.recorded(outcome));
      case 'duplicate':
        if (outcome.positions.length === 0) throw decidedOtherwise();
        refuseOtherRequest(outcome, appendOptions.idempotencyFingerprint);
        return resultOf(byName, outcome, await readPositions(within ?? db, byName, outcome.positions));
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
    const sound = checks.flatMap((check) => (check instanceof InvalidInput ? [] : [check]));
    const outcomes = (sound.length === 0 ? [] : await whenChecked(() => send(sound))).values();
    return checks.map((check) => {
      if (check instanceof InvalidInput) return { kind: 'refused', error: check };
      return verdictOf(outcomes.next().value as AppendOutcome); // one outcome for each valid append
    });
  }

  async function alone(target: Queryable, one: CheckedAppend): Promise<AppendOutcome> {
    if (inline?.concerns([one])) return inline.appendWithin(target, one);
    return (await appendBatch(target, [one.prepared]))[0] as AppendOutcome; // one outcome for each append
  }

  return {
    families: byName,
    appendInOrder,
    append: ({ family, streamId, events, expectedVersion = 'any', ...appendOptions }, within) =>
      appendToStreams(
        { streams: [{ family, streamId, events, expectedVersion } as StreamAppend], ...appendOptions },
        within,
      ), // `events` and `family` have matching types
    appendToStreams,
    async findAppend(idempotencyKey, idempotencyFingerprint) {
      const written = await findAppend(db, idempotencyKey);
      if (!written || written.positions.length === 0) return undefined;
      refuseOtherRequest(written, idempotencyFingerprint);
      return resultOf(byName, { kind: 'duplicate', ...written }, await readPositions(db, byName, written.positions));
    },
    readStream: <F extends EventFamily>(family: F, streamId: string, readOptions?: ReadStreamOptions) =>
      readStream(db, family, streamId, readOptions) as AsyncIterable<RecordedEventOf<F>>, // every stored payload was validated by its schema
    ...createStateReads(db, byName, options.onFolded),
    streamVersion: (family, streamId) => streamVersion(db, family.storedName, streamId),
    ...createLogReads(db, byName, options.onSlowEvent),
  };
}

function locksOfAppends(db: Database, inline: InlineAppends | undefined): AppendLocks {
  const gate = advisoryLock('inline', gateLock);
  return {
    locksOf: (one) => [gate, ...(inline?.locksOf(one) ?? []), ...logLocksOf(one.prepared)],
    readHeld: (locks, waitMs) => readHeld(db, locks, waitMs),
  };
}

function verdictOf(outcome: AppendOutcome): AppendVerdict {
  switch (outcome.kind) {
    case 'conflict':
      return { kind: 'refused', error: conflictOf(outcome) };
    case 'refused':
      return outcome;
    default:
      return { kind: outcome.kind };
  }
}
