import { RefoldError } from '../../errors.ts';
import type { ProcessorClaim, ProcessorError } from '../../store/processors/checkpoints.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';

/** For a unit that can't go on from where it is, as its owner has found when it began: it takes nothing in, and is kept as stopped with the reason. */
export function stoppedProcessor(
  id: string,
  { checkpoint }: ProcessorClaim,
  failure: RefoldError,
): MaintainedProcessor {
  return { id, filter: [], checkpoint, process: async () => 'stop', flush: async () => {}, failure };
}

/** Why a processor stops, as the registry keeps it. */
export function stopOf(error: unknown, message: string, codeFingerprint: string | undefined): ProcessorError {
  const at = new Date().toISOString();
  const known = { message, at, ...(codeFingerprint === undefined ? {} : { codeFingerprint }) };
  if (!(error instanceof RefoldError)) return known;
  const { position } = error.fields;
  return { ...known, code: error.code, ...(position === undefined ? {} : { position: String(position) }) };
}
