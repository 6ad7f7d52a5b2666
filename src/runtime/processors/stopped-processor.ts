import { RefoldError } from '../../errors.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import type { ProcessorError } from '../../store/statements/stored-json.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';

/** A processor for a unit that turned out at its start to be unable to continue. It processes nothing, and is recorded as stopped with the reason. */
export function stoppedProcessor(
  id: string,
  { checkpoint }: ProcessorClaim,
  failure: RefoldError,
): MaintainedProcessor {
  return { id, filter: [], checkpoint, process: async () => 'stop', flush: async () => {}, failure };
}

/** Returns why a processor stops, in the form that the registry stores. */
export function stopOf(error: unknown, message: string, codeFingerprint: string | undefined): ProcessorError {
  const at = new Date().toISOString();
  const known = { message, at, ...(codeFingerprint === undefined ? {} : { codeFingerprint }) };
  if (!(error instanceof RefoldError)) return known;
  const { position, type, streamId } = error.fields;
  return {
    ...known,
    code: error.code,
    ...(position === undefined ? {} : { position: String(position) }),
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof streamId === 'string' ? { streamId } : {}),
  };
}
