import type { Command } from '../../commands/define-command.ts';
import { CommandRejected, RefoldError } from '../../errors.ts';
import type { EventMetadata } from '../../events/event.ts';
import type { StepResult } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import { findOutcome, keepOutcome, type QuietOutcome, rejectionOf } from '../../store/reactors/step-outcomes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { executeCommand } from './command-handler.ts';

export interface StepContext {
  readonly db: Queryable;
  readonly log: EventLog;
  /** Identifies the step. The stored key also contains the command's name. */
  readonly key: string;
  readonly metadata: EventMetadata;
}

/**
 * Runs a command once under its key, whatever the outcome. A repetition returns the first outcome. A rejected step stays rejected, even if it
 * would be accepted now. Otherwise, after a crash following a compensation, the step could succeed although it is already compensated.
 *
 * @throws CommandRejected, InvalidInput
 */
export async function executeStep(
  { db, log, key: step, metadata }: StepContext,
  command: Command,
  input: unknown,
): Promise<StepResult> {
  const key = `${command.name}:${step}`; // the same key as in executeCommand
  const before = await findOutcome(db, key);
  if (before) return asResult(before);
  let outcome: QuietOutcome;
  try {
    const result = await executeCommand(log, command, input, { idempotencyKey: step, metadata });
    if (result.events.length > 0) return result;
    const { position, streamId, streamVersion } = result;
    outcome = { kind: 'nothing', position, streamId, streamVersion };
  } catch (error) {
    if (!(error instanceof CommandRejected)) throw error;
    outcome = { kind: 'rejected', message: error.message, details: error.fields };
  }
  if (await keepOutcome(db, key, outcome)) return asResult(outcome);
  throw new RefoldError('PROCESSOR_FENCED', `Another process has decided '${key}' meanwhile. Run it again.`);
}

function asResult(outcome: QuietOutcome): StepResult {
  if (outcome.kind === 'rejected') throw rejectionOf(outcome);
  const { position, streamId, streamVersion } = outcome;
  return { position, streamId, streamVersion, events: [] };
}
