import type { CommandStream } from '../../commands/command-options.ts';
import type { Command } from '../../commands/define-command.ts';
import { inputFingerprint } from '../../commands/input-fingerprint.ts';
import { ConcurrencyConflict, InvalidInput, RefoldError } from '../../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../../events/event.ts';
import { expectedVersionProblem } from '../../events/expected-version.ts';
import { beginning, type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { StreamAppend } from '../../store/log/append-request.ts';
import type { AppendResult } from '../../store/log/append-result.ts';
import type { StreamVersion } from '../../store/log/append-statement.ts';
import type { StateOf } from '../../store/log/stream-state.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import { withoutTraps } from '../../thrown.ts';
import { continuedTrace, isTracing, traced } from '../../tracing.ts';
import type { SnapshotWriter } from './snapshot-writer.ts';
import type { StreamName, StreamTurns } from './stream-turns.ts';

export interface ExecuteOptions {
  /**
   * Identifies the execution. A second one with the same key and input does nothing and returns the first result. The same key with another
   * input is refused. Keys are kept for `runtime.idempotencyDays`.
   */
  readonly idempotencyKey?: string;
  /**
   * The stream version that the client saw. The command is refused if the stream is at another version. Of a command on several streams, it is
   * the version of the first one.
   */
  readonly expectedVersion?: ExpectedVersion;
  readonly metadata?: EventMetadata;
}

export interface ExecuteResult {
  /** The position of the last event written. If the command wrote none: of the last event of its streams. */
  readonly position: GlobalPosition;
  /** The first of {@link streams}. */
  readonly streamId: string;
  readonly streamVersion: number;
  /** The streams of the command in its order, each with its version after the command. */
  readonly streams: readonly StreamVersion[];
  readonly events: readonly RecordedEvent[];
}

// Each retry means that another process changed the same stream first. More conflicts in a row than this mean that a stream is used as a queue.
const tries = 10;

export interface CommandSurroundings {
  /** @default no snapshots are stored */
  readonly snapshots?: SnapshotWriter;
  /**
   * Whether the idempotency key comes from a client. Clients' keys expire, and are refused with another input. Other keys are kept for ever,
   * because the same execution may be repeated after any time.
   * @default false
   */
  readonly forClients?: boolean;
  /** The idempotency key is a workflow step's. It is used as it is, and kept with this fingerprint. */
  readonly stepFingerprint?: string;
  /** Lets commands of this process that meet on one stream take turns. @default they run concurrently */
  readonly turns?: StreamTurns;
}

/**
 * Runs a command: folds the states of its streams, decides, and appends at the versions decided on, to all streams or to none. Repeats if another
 * command was faster on one of them. Retries once if a connection was lost before anything was written. With an idempotency key it also
 * retries when the outcome is unknown: the key finds what was written.
 *
 * @throws RefoldError `DATABASE_UNAVAILABLE` if nothing was done, `OUTCOME_UNKNOWN` if the events may have been written.
 */
export function executeCommand(
  log: EventLog,
  command: Command,
  input: unknown,
  options: ExecuteOptions = {},
  surroundings: CommandSurroundings = {},
): Promise<ExecuteResult> {
  const execute = () => executeOnce(log, command, input, options, surroundings);
  if (!isTracing) return withRepetition(execute, options);
  const within = continuedTrace(options.metadata?.traceparent);
  const attributes = { 'refold.command': command.name };
  return traced(`command ${command.name}`, { within, attributes }, () => withRepetition(execute, options));
}

async function withRepetition(execute: () => Promise<ExecuteResult>, options: ExecuteOptions): Promise<ExecuteResult> {
  try {
    return await execute();
  } catch (thrown) {
    const error = withoutTraps(thrown); // of the application's functions
    if (!isRepeatable(error, options)) throw error;
    return execute().catch((second: unknown) => {
      throw isOutage(second) && codeOf(error) === 'OUTCOME_UNKNOWN' ? error : second;
    });
  }
}

const codeOf = (error: unknown) => (error instanceof RefoldError ? error.code : undefined);

function isRepeatable(error: unknown, { idempotencyKey }: ExecuteOptions): boolean {
  if (!(error instanceof RefoldError)) return false;
  // `sent: false` means that no connection was available. Another attempt would only wait again.
  if (error.code === 'DATABASE_UNAVAILABLE') return error.fields.sent !== false;
  return error.code === 'OUTCOME_UNKNOWN' && idempotencyKey !== undefined;
}

async function executeOnce(
  log: EventLog,
  command: Command,
  input: unknown,
  options: ExecuteOptions,
  { snapshots, forClients = false, stepFingerprint, turns }: CommandSurroundings,
): Promise<ExecuteResult> {
  const { metadata = {}, expectedVersion, idempotencyKey: given } = options;
  checkExpectedVersion(command, expectedVersion);
  const parsed = await command.parse(input);
  const streams = command.streamsOf(parsed);
  const isUsedAsItIs = given === undefined || stepFingerprint !== undefined;
  const key = isUsedAsItIs ? given : keyOf(command, given, forClients ? metadata.actor : undefined);
  const fingerprint = key !== undefined && forClients ? inputFingerprint(input) : stepFingerprint;
  const execution = { log, command, parsed, streams, metadata, expectedVersion, key, fingerprint, snapshots };
  const before = await answeredBefore(execution);
  if (before) return before;
  let loaded: unknown;
  try {
    loaded = await command.load(parsed, { metadata, now: new Date().toISOString() });
  } catch (error) {
    return firstResultOrThrow(execution, error);
  }
  const names = streams.map(nameOf);
  for (let count = 1; ; count++) {
    const isMet = count > 1 || names.some((stream) => turns?.isTaken(stream));
    const end = isMet ? await turns?.take(names) : undefined;
    try {
      const outcome = await attempt(execution, loaded);
      if (!(outcome instanceof ConcurrencyConflict)) return outcome;
      if (count === tries) throw outcome;
    } finally {
      end?.();
    }
  }
}

interface Execution {
  readonly log: EventLog;
  readonly command: Command;
  readonly parsed: unknown;
  readonly streams: readonly CommandStream[];
  readonly metadata: EventMetadata;
  readonly expectedVersion: ExpectedVersion | undefined;
  readonly key: string | undefined;
  readonly fingerprint: string | undefined;
  readonly snapshots: SnapshotWriter | undefined;
}

/** Runs the command once. Returns the conflict if another command was faster; then nothing is written and the caller may try again. */
async function attempt(execution: Execution, loaded: unknown): Promise<ExecuteResult | ConcurrencyConflict> {
  const { log, command, parsed, streams, metadata, key, fingerprint, snapshots } = execution;
  const found = await log.statesOf(streams);
  const noted = streams.map(({ state, streamId }, index) => snapshots?.note(state, streamId, found[index] as StateOf)); // one for each stream
  const writeSnapshots = () => {
    for (const snapshot of noted) snapshot?.write();
  };
  const streamVersions = found.map(({ version }) => version);
  let decided: readonly (readonly NewEvent[])[];
  try {
    refuseOtherVersion(execution, streamVersions[0] ?? 0);
    const states = found.map(({ state }) => state);
    decided = command.decide(parsed, states, streams, {
      streamVersions,
      metadata,
      now: new Date().toISOString(),
      loaded,
    });
  } catch (error) {
    return firstResultOrThrow(execution, error);
  }
  if (decided.every((events) => events.length === 0)) {
    writeSnapshots();
    return (await answeredBefore(execution)) ?? unchanged(streams, found);
  }
  const keyed = {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(fingerprint === undefined ? {} : { idempotencyFingerprint: fingerprint }),
  };
  // A stream without events is part of the append: the decision is based on its version, too.
  const appends = streams.map(({ state: { family }, streamId }, index) => {
    const version = streamVersions[index] ?? 0;
    return { family, streamId, events: decided[index] ?? [], expectedVersion: version === 0 ? 'no-stream' : version };
  });
  try {
    const result = await log.appendToStreams({ streams: appends as readonly StreamAppend[], metadata, ...keyed }); // decide checked the types of its events
    writeSnapshots();
    return resultOf(result, execution);
  } catch (error) {
    if (error instanceof ConcurrencyConflict) return error;
    throw error;
  }
}

/** The same command may have been sent twice at once, and this copy is refused because of the first one's events. */
async function firstResultOrThrow(execution: Execution, error: unknown): Promise<ExecuteResult> {
  const first = await answeredBefore(execution);
  if (first) return first;
  throw error;
}

/** Returns the earlier result of the execution's key, if the key was used. */
async function answeredBefore(execution: Execution): Promise<ExecuteResult | undefined> {
  const { log, key, fingerprint } = execution;
  const before = key === undefined ? undefined : await log.findAppend(key, fingerprint);
  return before && resultOf(before, execution);
}

/** Clients choose their own keys. Two clients may choose the same key, and neither may see the other's result. */
function keyOf({ name }: Command, key: string, actor: unknown): string {
  return actor === undefined ? `${name}:${key}` : `${name}:${inputFingerprint(actor)}:${key}`;
}

function checkExpectedVersion({ name }: Command, expected: unknown): void {
  const message = expected === undefined ? undefined : expectedVersionProblem(expected);
  if (message === undefined) return;
  throw new InvalidInput('BAD_USER_INPUT', `The expected version of '${name}'`, [
    { path: ['expectedVersion'], message },
  ]);
}

function refuseOtherVersion({ streams, expectedVersion: expected }: Execution, actual: number): void {
  if (expected === undefined || expected === 'any') return;
  const fits = expected === 'stream-exists' ? actual > 0 : actual === (expected === 'no-stream' ? 0 : expected);
  if (!fits) throw new ConcurrencyConflict({ ...nameOf(streams[0] as CommandStream), expected, actual }); // there is at least one
}

function nameOf({ state, streamId }: CommandStream): StreamName {
  return { family: state.family.name, streamId };
}

function unchanged(streams: readonly CommandStream[], found: readonly StateOf[]): ExecuteResult {
  const position = found.map((one) => one.position).reduce(laterPosition, beginning);
  const versions = streams.map((stream, index) => ({ ...nameOf(stream), version: found[index]?.version ?? 0 }));
  return { position, ...firstOf(versions), streams: versions, events: [] };
}

function resultOf(result: AppendResult, { command, streams }: Execution): ExecuteResult {
  const { position, events, streams: written } = result;
  const versions = streams.map(nameOf).map(({ family, streamId }) => {
    const stream = written.find((one) => one.streamId === streamId && one.family === family);
    if (stream) return stream;
    const used = written.map((one) => `'${one.streamId}'`).join(', ');
    const message = `this key was used for ${used} before; a key belongs to one execution. Send another.`;
    throw new InvalidInput('BAD_USER_INPUT', `The idempotency key of '${command.name}'`, [
      { path: ['idempotencyKey'], message },
    ]);
  });
  return { position, ...firstOf(versions), streams: versions, events };
}

function firstOf(versions: readonly StreamVersion[]): Pick<ExecuteResult, 'streamId' | 'streamVersion'> {
  const { streamId, version } = versions[0] as StreamVersion; // a command is about at least one stream
  return { streamId, streamVersion: version };
}
