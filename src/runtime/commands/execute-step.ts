import type { Command } from '../../commands/define-command.ts';
import { inputFingerprint } from '../../commands/input-fingerprint.ts';
import { CommandRejected, InvalidInput, RefoldError } from '../../errors.ts';
import type { EventMetadata } from '../../events/event.ts';
import type { StepResult } from '../../reactors/reactor.ts';
import type { EventLog } from '../../store/event-log.ts';
import {
  type FoundStep,
  findSteps,
  keepOutcome,
  type QuietOutcome,
  rejectionOf,
  type StepWork,
  stepWorkText,
} from '../../store/reactors/step-outcomes.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { storedJson } from '../../thrown.ts';
import { executeCommand } from './command-handler.ts';
import type { Step } from './step-names.ts';

export interface StepContext {
  readonly db: Queryable;
  readonly log: EventLog;
  readonly step: Step;
  readonly metadata: EventMetadata;
}

/**
 * Runs a command once under its step's key, whatever the outcome. A repetition returns the first outcome. A rejected step stays rejected, even
 * if it would be accepted now. Otherwise, after a crash following a compensation, the step could succeed although it is already compensated.
 *
 * @throws CommandRejected, InvalidInput, RefoldError `STEP_CHANGED` if the outcome is of another input
 */
export async function executeStep(context: StepContext, command: Command, input: unknown): Promise<StepResult> {
  const { db, log, step, metadata } = context;
  const work = { command: command.name, input: inputFingerprint(input) };
  const before = await findStored(db, step, work);
  if (before) return storedResult(log, before);
  let outcome: QuietOutcome;
  try {
    const result = await executeCommand(
      log,
      command,
      input,
      { idempotencyKey: step.key, metadata },
      { stepFingerprint: stepWorkText(work) },
    );
    if (result.events.length > 0) return result;
    const { position, streamId, streamVersion } = result;
    outcome = { kind: 'nothing', position, streamId, streamVersion };
  } catch (error) {
    // Another process may have run the step meanwhile, with another command or another input.
    const meanwhile = error instanceof InvalidInput ? await findStored(db, step, work) : undefined;
    if (meanwhile) return storedResult(log, meanwhile);
    if (!(error instanceof CommandRejected)) throw error;
    outcome = { kind: 'rejected', message: error.message, details: JSON.parse(storedJson(error.fields)) };
  }
  if (await keepOutcome(db, step.key, work, outcome)) return quietResult(outcome);
  throw new RefoldError('PROCESSOR_FENCED', `Another process has decided '${step.key}' meanwhile. Run it again.`);
}

/** The stored outcome of the step. @throws RefoldError `STEP_CHANGED` */
async function findStored(db: Queryable, step: Step, work: StepWork): Promise<FoundStep | undefined> {
  const { key, earlierKey, takenOver } = step;
  const found = await findSteps(db, earlierKey === undefined ? [key] : [key, earlierKey]);
  const own = found.find((one) => one.key === key);
  if (own && own.work.input !== work.input) throw stepChanged(step, own.work.command);
  if (own) return own;
  const earlier = found.find((one) => one.key === earlierKey && one.work.input === work.input);
  if (!earlier || takenOver.has(earlier.key)) return undefined;
  takenOver.add(earlier.key);
  return earlier;
}

async function storedResult(log: EventLog, found: FoundStep): Promise<StepResult> {
  if (found.quiet) return quietResult(found.quiet);
  const written = await log.findAppend(found.key);
  const stream = written?.streams[0];
  if (!written || !stream) throw new Error(`the step '${found.key}' has an outcome`); // it was just found
  const { position, events } = written;
  return { position, streamId: stream.streamId, streamVersion: stream.version, events };
}

function quietResult(outcome: QuietOutcome): StepResult {
  if (outcome.kind === 'rejected') throw rejectionOf(outcome);
  const { position, streamId, streamVersion } = outcome;
  return { position, streamId, streamVersion, events: [] };
}

/** The error of a step whose outcome is of another input. */
export function stepChanged(
  { reactor, event, name, command }: Pick<Step, 'reactor' | 'event' | 'name' | 'command'>,
  stored: string,
): RefoldError {
  const { type, streamId, position, id } = event;
  return new RefoldError(
    'STEP_CHANGED',
    `${reactor}: step '${name}' of '${type}' at position ${position} (stream '${streamId}') has run as '${stored}' with another input than '${command}' has now. ` +
      'Nothing was executed. The code of the handler has changed, or the input depends on a clock, on chance or on data that changes. ' +
      "Restore the input, or name the new step differently ({ step: '…' }); then handle the event again.",
    { reactor, streamId, position: position.toString(), eventId: id, step: name, command, storedCommand: stored },
  );
}
