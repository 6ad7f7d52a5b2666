import type { RefoldError } from '../errors.ts';
import type { ProcessorClaim } from '../store/checkpoints.ts';
import type { MaintainedProcessor } from './maintained-unit.ts';

/** For a unit that can't go on from where it is, as its owner has found when it began: it takes nothing in, and is kept as stopped with the reason. */
export function stoppedProcessor(
  id: string,
  { checkpoint }: ProcessorClaim,
  failure: RefoldError,
): MaintainedProcessor {
  return { id, filter: [], checkpoint, process: async () => 'stop', flush: async () => {}, failure };
}
