import type { Command, DecideContext } from '../commands/define-command.ts';
import { ConcurrencyConflict, InvalidInput } from '../errors.ts';
import type { EventMetadata, ExpectedVersion, RecordedEvent } from '../events/event.ts';
import { beginning, type GlobalPosition } from '../events/global-position.ts';
import type { AppendResult, EventLog } from '../store/event-log.ts';

export interface ExecuteOptions {
  /** Names the execution: a second one with the same key does nothing and gives the first one's result. */
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

// Each further try means that another command on the same stream won; more in a row than this is a stream that serves as a queue.
const tries = 10;

/** Runs a command: fold the stream's state, decide, append under the version decided on; again where another command was faster. */
export async function executeCommand(
  log: EventLog,
  command: Command,
  input: unknown,
  options: ExecuteOptions = {},
): Promise<ExecuteResult> {
  const { metadata = {}, expectedVersion, idempotencyKey } = options;
  const parsed = await command.parse(input);
  const streamId = command.streamOf(parsed);
  const key = idempotencyKey === undefined ? undefined : `${command.name}:${idempotencyKey}`;
  const before = key === undefined ? undefined : await log.findAppend(key);
  if (before) return resultOf(before, command, streamId);
  for (let attempt = 1; ; attempt++) {
    const { state, version, last } = await currentState(log, command, streamId);
    refuseOtherVersion(command, streamId, expectedVersion, version);
    const context: DecideContext = { streamVersion: version, metadata, now: new Date().toISOString() };
    const events = command.decide(parsed, state, context);
    if (events.length === 0) return { position: last, streamId, streamVersion: version, events: [] };
    try {
      const result = await log.append({
        family: command.family,
        streamId,
        events,
        expectedVersion: version === 0 ? 'no-stream' : version,
        metadata,
        ...(key === undefined ? {} : { idempotencyKey: key }),
      });
      return resultOf(result, command, streamId);
    } catch (error) {
      if (!(error instanceof ConcurrencyConflict) || attempt === tries) throw error;
    }
  }
}

async function currentState(
  log: EventLog,
  command: Command,
  streamId: string,
): Promise<{ state: unknown; version: number; last: GlobalPosition }> {
  let state = command.state.initial();
  let version = 0;
  let last = beginning;
  for await (const event of log.readStream(command.family, streamId)) {
    state = command.state.apply(state, event);
    version = event.streamPosition;
    last = event.position;
  }
  return { state, version, last };
}

function refuseOtherVersion(
  command: Command,
  streamId: string,
  expected: ExpectedVersion | undefined,
  actual: number,
): void {
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
