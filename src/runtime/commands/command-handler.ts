import type { Command } from '../../commands/define-command.ts';
import { inputFingerprint } from '../../commands/input-fingerprint.ts';
import { ConcurrencyConflict, InvalidInput, RefoldError } from '../../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { AppendResult } from '../../store/log/append-result.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { SnapshotWriter } from './snapshot-writer.ts';
import type { StreamTurns } from './stream-turns.ts';

export interface ExecuteOptions {
  /**
   * Identifies the execution. A second one with the same key and input does nothing and returns the first result. The same key with another
   * input is refused. Keys are kept for `runtime.idempotencyDays`.
   */
  readonly idempotencyKey?: string;
  /** The stream version that the client saw. The command is refused if the stream is at another version. */
  readonly expectedVersion?: ExpectedVersion;
  readonly metadata?: EventMetadata;
}

export interface ExecuteResult {
  /** The position of the last event written. If the command wrote none: of the stream's last event. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
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
 * Runs a command: folds the stream's state, decides, and appends at the version decided on. Repeats if another command was faster. Retries once
 * if a connection was lost before anything was written. With an idempotency key it also retries when the outcome is unknown: the key finds what was written.
 *
 * @throws RefoldError `DATABASE_UNAVAILABLE` if nothing was done, `OUTCOME_UNKNOWN` if the events may have been written.
 */
export async function executeCommand(
  log: EventLog,
  command: Command,
  input: unknown,
  options: ExecuteOptions = {},
  surroundings: CommandSurroundings = {},
): Promise<ExecuteResult> {
  try {
    return await executeOnce(log, command, input, options, surroundings);
  } catch (error) {
    if (!isRepeatable(error, options)) throw error;
    return executeOnce(log, command, input, options, surroundings).catch((second: unknown) => {
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
  const parsed = await command.parse(input);
  const streamId = command.streamOf(parsed);
  const isUsedAsItIs = given === undefined || stepFingerprint !== undefined;
  const key = isUsedAsItIs ? given : keyOf(command, given, forClients ? metadata.actor : undefined);
  const fingerprint = key !== undefined && forClients ? inputFingerprint(input) : stepFingerprint;
  const execution = { log, command, parsed, streamId, metadata, expectedVersion, key, fingerprint, snapshots };
  const before = await answeredBefore(execution);
  if (before) return before;
  const stream = { family: command.family.name, streamId };
  for (let count = 1; ; count++) {
    const isMet = count > 1 || turns?.isTaken(stream);
    const end = isMet ? await turns?.take(stream) : undefined;
    try {
      const outcome = await attempt(execution);
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
  readonly streamId: string;
  readonly metadata: EventMetadata;
  readonly expectedVersion: ExpectedVersion | undefined;
  readonly key: string | undefined;
  readonly fingerprint: string | undefined;
  readonly snapshots: SnapshotWriter | undefined;
}

/** Runs the command once. Returns the conflict if another command was faster; then nothing is written and the caller may try again. */
async function attempt(execution: Execution): Promise<ExecuteResult | ConcurrencyConflict> {
  const { log, command, parsed, streamId, metadata, key, fingerprint, snapshots } = execution;
  const found = await log.stateOf(command.state, streamId);
  const { state, version, position } = found;
  const snapshot = snapshots?.note(command.state, streamId, found);
  let events: readonly NewEvent[];
  try {
    refuseOtherVersion(execution, version);
    events = command.decide(parsed, state, { streamVersion: version, metadata, now: new Date().toISOString() });
  } catch (error) {
    // The same command may have been sent twice at once, and this copy is refused because of the first one's events.
    const first = await answeredBefore(execution);
    if (first) return first;
    throw error;
  }
  if (events.length === 0) {
    snapshot?.write();
    return (await answeredBefore(execution)) ?? { position, streamId, streamVersion: version, events: [] };
  }
  const expectedVersion = version === 0 ? 'no-stream' : version;
  const keyed = {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(fingerprint === undefined ? {} : { idempotencyFingerprint: fingerprint }),
  };
  try {
    const result = await log.append({ family: command.family, streamId, events, expectedVersion, metadata, ...keyed });
    snapshot?.write();
    return resultOf(result, command, streamId);
  } catch (error) {
    if (error instanceof ConcurrencyConflict) return error;
    throw error;
  }
}

/** Returns the earlier result of the execution's key, if the key was used. */
async function answeredBefore({ log, command, streamId, key, fingerprint }: Execution) {
  const before = key === undefined ? undefined : await log.findAppend(key, fingerprint);
  return before && resultOf(before, command, streamId);
}

/** Clients choose their own keys. Two clients may choose the same key, and neither may see the other's result. */
function keyOf({ name }: Command, key: string, actor: unknown): string {
  return actor === undefined ? `${name}:${key}` : `${name}:${inputFingerprint(actor)}:${key}`;
}

function refuseOtherVersion({ command, streamId, expectedVersion: expected }: Execution, actual: number): void {
  if (expected === undefined || expected === 'any') return;
  const fits = expected === 'stream-exists' ? actual > 0 : actual === (expected === 'no-stream' ? 0 : expected);
  if (!fits) throw new ConcurrencyConflict({ family: command.family.name, streamId, expected, actual });
}

function resultOf(result: AppendResult, command: Command, streamId: string): ExecuteResult {
  const { position, events, streams } = result;
  const stream = streams.find((one) => one.streamId === streamId && one.family === command.family.name);
  if (!stream) {
    const used = streams.map((one) => `'${one.streamId}'`).join(', ');
    const message = `this key was used for ${used} before; a key belongs to one execution. Send another.`;
    throw new InvalidInput('BAD_USER_INPUT', `The idempotency key of '${command.name}'`, [
      { path: ['idempotencyKey'], message },
    ]);
  }
  return { position, streamId, streamVersion: stream.version, events };
}
