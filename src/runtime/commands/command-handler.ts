import type { Command } from '../../commands/define-command.ts';
import { inputFingerprint } from '../../commands/input-fingerprint.ts';
import { ConcurrencyConflict, InvalidInput, RefoldError } from '../../errors.ts';
import type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { AppendResult, EventLog } from '../../store/event-log.ts';
import { isOutage } from '../../store/postgres/database-errors.ts';
import type { SnapshotWriter } from './snapshot-writer.ts';
import type { StreamTurns } from './stream-turns.ts';

export interface ExecuteOptions {
  /**
   * Names the execution: a second one with the same key and input does nothing and gives the first one's result; one with another input is
   * refused. Remembered for `runtime.idempotencyDays`.
   */
  readonly idempotencyKey?: string;
  /** The version that the client saw; the command is refused where the stream is at another. */
  readonly expectedVersion?: ExpectedVersion;
  readonly metadata?: EventMetadata;
}

export interface ExecuteResult {
  /** Of the last event written; where the command led to none, of the stream's last event. */
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly events: readonly RecordedEvent[];
}

// Each further try means that a command of another process on the same stream won; more in a row than this is a stream that serves as a queue.
const tries = 10;

export interface CommandSurroundings {
  /** @default no snapshots are taken */
  readonly snapshots?: SnapshotWriter;
  /**
   * Whether the key is a client's, which is forgotten some day, and refused with another input. Others are kept for ever, as what they name
   * may be run again after any time.
   * @default false
   */
  readonly forClients?: boolean;
  /** Where the commands of the process stand in line that meet on one stream. @default they don't */
  readonly turns?: StreamTurns;
}

/**
 * Runs a command: fold the stream's state, decide, append under the version decided on; again where another command was faster. Once more where
 * a connection was lost before anything was written; with an idempotency key also where it may have been, as what was written is found by its key.
 *
 * @throws RefoldError `DATABASE_UNAVAILABLE` where nothing was done, `OUTCOME_UNKNOWN` where it may have been written.
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
  // Where no connection can be had another one would be waited for in vain.
  if (error.code === 'DATABASE_UNAVAILABLE') return error.fields.sent !== false;
  return error.code === 'OUTCOME_UNKNOWN' && idempotencyKey !== undefined;
}

async function executeOnce(
  log: EventLog,
  command: Command,
  input: unknown,
  options: ExecuteOptions,
  { snapshots, forClients = false, turns }: CommandSurroundings,
): Promise<ExecuteResult> {
  const { metadata = {}, expectedVersion, idempotencyKey: given } = options;
  const parsed = await command.parse(input);
  const streamId = command.streamOf(parsed);
  const key = given === undefined ? undefined : keyOf(command, given, forClients ? metadata.actor : undefined);
  const fingerprint = key !== undefined && forClients ? inputFingerprint(input) : undefined;
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

/** A conflict where another command was faster: what was decided is not written, and another try may be. */
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
    // It may be refused for events of its own: sent twice at a time, and this one came second.
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

/** What came of the execution's key before, if it was used. */
async function answeredBefore({ log, command, streamId, key, fingerprint }: Execution) {
  const before = key === undefined ? undefined : await log.findAppend(key, fingerprint);
  return before && resultOf(before, command, streamId);
}

/** Clients choose keys by themselves: two of them may choose the same, and neither is to hear of the other. */
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
